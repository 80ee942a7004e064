"""Secrets: activities have their values, and nothing that a worker says has them in any form."""

from __future__ import annotations

import base64
import json
import logging
import os
import unittest
from pathlib import Path
from urllib.parse import quote, quote_plus

from support import WorldTest

from outlast import Context, Failure, Secret, Worker, activity
from outlast.secret import Mask

CANARY = 'Kx7/pq+Zw "9m"'
VARIABLE = "OUTLAST_TEST_SECRET"

FORMS = [
    CANARY,
    base64.b64encode(CANARY.encode()).decode().rstrip("="),
    base64.b64encode(b"x" + CANARY.encode()).decode()[2:],
    base64.b64encode(b"xy" + CANARY.encode()).decode()[3:-2],
    CANARY.encode().hex(),
    CANARY.encode().hex().upper(),
    quote(CANARY, safe=""),
    quote_plus(CANARY),
    json.dumps(CANARY)[1:-1],
]


@activity
def tell(how: str, token: Secret, context: Context) -> str:
    """Tells a secret in all ways that it has."""
    for letter in token.value:
        context.progress(letter)
    if how == "raise":
        raise Failure("Told", f"it is {token.value}")
    if how == "crash":
        raise ValueError(f"it is {token.value}")
    context.save_handle({"token": token.value})
    return " ".join(FORMS)


@activity(name="tell", isolated=True)
def tell_apart(how: str, token: Secret) -> str:
    return f"{how}: {token.value}"


class Masks(unittest.TestCase):
    def test_every_form_is_replaced_also_where_it_is_broken(self) -> None:
        mask = Mask({"T": CANARY})
        for form in FORMS:
            for text in (form, f"a{form}b", form[:5] + "\n" + form[5:], form[:7] + "\\n" + form[7:]):
                self.assertIn("[secret T]", mask.text(text), text)
        self.assertEqual(mask.text("Kx7/pq"), "Kx7/pq")
        self.assertEqual(mask.json({CANARY: [1, CANARY, None, True]}), {"[secret T]": [1, "[secret T]", None, True]})
        self.assertEqual(Mask({"A": "abcdefgh", "B": "efghijkl"}).text("-abcdefghijkl-"), "-[secret A]-")

    def test_every_way_to_cut_a_text_gives_the_same(self) -> None:
        mask = Mask({"T": CANARY})
        text = f"begin {CANARY} Kx7/ {CANARY} Kx"
        whole = mask.text(text)
        for size in range(1, len(text)):
            shown = held = ""
            for at in range(0, len(text), size):
                held += text[at : at + size]
                settled = mask.settled(held)
                shown, held = shown + mask.text(held[:settled]), held[settled:]
            self.assertEqual(shown + mask.text(held), whole, size)


class Workers(WorldTest):
    def test_a_secret_is_known_to_the_worker_alone(self) -> None:
        os.environ[VARIABLE] = CANARY
        self.addCleanup(os.environ.pop, VARIABLE)
        shown = f"[secret {VARIABLE}]"
        with self.assertLogs("outlast") as logged, self.serving(tell, secrets=[VARIABLE]):
            logging.getLogger("outlast").warning("a line at least")
            for how, said in (
                ("give", " ".join([shown] * len(FORMS))),
                ("raise", f"Told: it is {shown}"),
                ("crash", f"Crashed: ValueError: it is {shown}"),
            ):
                got = self.client.run("Tell", {"how": how, "token": VARIABLE}, id=how)
                self.assertEqual(got.replace("xy", "").count(shown), said.count(shown), got)
                self.assertNotIn(CANARY, json.dumps(self.client.history(how), default=str))
            refused = self.client.run("Tell", {"how": "give", "token": "HOME"})
            self.assertEqual(refused, "NoSecret: HOME is none of the secrets that the worker was given")
        self.assertFalse([line for line in logged.output if CANARY in line])
        with self.serving(tell_apart, secrets=[VARIABLE]):
            self.assertEqual(self.client.run("Tell", {"how": "isolated", "token": VARIABLE}), f"isolated: {shown}")
        self.world.kill_runtime()
        for path in Path(self.world.directory).rglob("*"):
            if path.is_file():
                stored = path.read_bytes()
                for form in FORMS:
                    self.assertNotIn(form.encode(), stored, path)

    def test_a_secret_that_is_not_set_is_missed_by_name(self) -> None:
        with self.serving(tell, secrets=["OUTLAST_TEST_UNSET"]):
            missed = self.client.run("Tell", {"how": "give", "token": "OUTLAST_TEST_UNSET"})
            self.assertIn("the variable OUTLAST_TEST_UNSET is not set", missed)


if __name__ == "__main__":
    unittest.main()
