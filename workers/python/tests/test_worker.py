"""Workers against a real runtime: results, failures, retries, signs of life, cancels, drains."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

from support import PATIENCE_S, SOURCE, WorldTest, terminate, until

from outlast import Context, DeclaredError, Done, Failure, Worker, WorkerRefused, activity
from outlast.link import Fence, boot_ms


class OutOfStock(DeclaredError):
    item: str


@dataclass
class Item:
    name: str
    price: Decimal
    tags: list[str]
    due: datetime | None
    wait: timedelta


@dataclass
class Paid:
    total: Decimal
    at: datetime


@dataclass
class Refused:
    why: str


USAGE = {"input_tokens": 100, "output_tokens": 20}


@activity(name="checkout", effect="idempotent", isolated=True)
def checkout_apart(items: list[Item], note: str | None) -> Paid | Refused:
    raise Failure("Cut", "no end came", cost=Decimal("0.03"), usage=USAGE)


@activity(isolated=True)
def slow(name: str, context: Context) -> str:
    """Holds its place until it is killed: it never looks whether it should end."""
    if name == "quick":
        context.progress("in its own process\n")
        return f"done by {os.getpid()}"
    if name == "broken":
        raise RuntimeError("broken")
    Path(name).write_text(str(os.getpid()))
    while True:
        time.sleep(1)


class Results(WorldTest):
    def test_plain_and_async_functions_give_results(self) -> None:
        for kind in ("plain", "async"):

            @activity(name="greet", effect="pure")
            def plain(name: str) -> str:
                return f"hello {name}"

            @activity(name="greet", effect="pure")
            async def cooperative(name: str) -> str:
                await asyncio.sleep(0)
                return f"hello {name}"

            with self.serving(plain if kind == "plain" else cooperative):
                self.assertEqual(self.client.run("Greet", {"name": kind}), f"hello {kind}")

    def test_typed_values_go_through_a_flow(self) -> None:
        seen: list[Item] = []

        @activity(effect="idempotent")
        def checkout(items: list[Item], note: str | None) -> Paid | Refused:
            seen.extend(items)
            if not items:
                return Refused("nothing to pay")
            return Paid(sum((item.price for item in items), Decimal()), datetime(2027, 3, 14, tzinfo=timezone.utc))

        item = Item("pear", Decimal("0.40"), ["fruit"], None, timedelta(minutes=90))
        with self.serving(checkout):
            bought = self.client.run("Shop", {"items": [item, item]})
            self.assertEqual(bought["receipt"], {"type": "Paid", "total": "0.8", "at": "2027-03-14T00:00:00.000Z"})
            self.assertEqual(seen, [item, item])
            refused = self.client.run("Shop", {"items": []})
            self.assertEqual(refused["receipt"], {"type": "Refused", "why": "nothing to pay"})

    def test_failures_reach_the_flow_by_their_names(self) -> None:
        ends = [
            OutOfStock("none left", item="pears"),
            Failure("RateLimited", "too fast"),
            ValueError("a bug"),
            "not a receipt",
            Done(Refused("closed"), cost=Decimal("0.02"), usage={"calls": 1}),
        ]

        @activity(effect="idempotent")
        def checkout(items: list[Item], note: str | None) -> Paid | Refused:
            end = ends.pop(0)
            if isinstance(end, Exception):
                raise end
            return end  # type: ignore[return-value]

        with self.serving(checkout):
            found = [self.client.run("Shop", {"items": []}) for _ in range(4)]
            last = self.client.start("Shop", {"items": []}, id="paid")
            self.client.wait(last.id)
        self.assertEqual(found[0], {"type": "Missing", "item": "pears"})
        self.assertEqual(found[1], {"type": "Odd", "kind": "RateLimited", "text": "too fast"})
        self.assertEqual(found[2], {"type": "Odd", "kind": "Crashed", "text": "ValueError: a bug"})
        self.assertEqual(found[3]["kind"], "BadResult")
        self.assertIn("none of Paid, Refused", found[3]["text"])
        self.assertEqual(self.client.show("paid").cost, Decimal("0.02"))

    def test_what_failed_attempts_took_counts_for_the_run(self) -> None:
        def failing(end: Any) -> Any:
            @activity(effect="idempotent")
            def checkout(items: list[Item], note: str | None) -> Paid | Refused:
                if isinstance(end, Exception):
                    raise end
                return end  # type: ignore[no-any-return]

            return checkout

        took: dict[str, Any] = {"cost": Decimal("0.03"), "usage": USAGE}
        declared = OutOfStock("none left", item="pears", cost=Decimal("0.03"), usage=USAGE)
        for what, offered in {
            "declared": failing(declared),
            "another": failing(Failure("Cut", "no end came", **took)),
            "no-receipt": failing(Done("not a receipt", **took)),
            "isolated": checkout_apart,
        }.items():
            with self.subTest(what), self.serving(offered):
                self.client.wait(self.client.start("Shop", {"items": []}, id=what).id)
                run = self.client.show(what)
                self.assertEqual((run.cost, run.raw["tokens"]), (Decimal("0.03"), {"input": 100, "output": 20}))

    def test_a_retryable_failure_is_tried_again_and_its_hint_is_kept(self) -> None:
        attempts: list[tuple[int, str]] = []

        @activity(effect="idempotent")
        def flaky(name: str, context: Context) -> int:
            attempts.append((context.attempt, context.key))
            if context.attempt < 3:
                raise Failure("Busy", "later", retry_after=timedelta(milliseconds=20))
            return context.attempt

        with self.serving(flaky):
            self.assertEqual(self.client.run("Flaky", {"name": "a"}, id="f"), 3)
        self.assertEqual([number for number, _ in attempts], [1, 2, 3])
        self.assertEqual(len({key for _, key in attempts}), 1, "every attempt has the same idempotency key")

    def test_an_unmendable_failure_is_not_tried_again(self) -> None:
        @activity
        def flaky(name: str) -> int:
            raise Failure("Never")

        with self.serving(flaky):
            self.assertEqual(self.client.run("Flaky", {"name": "a"}), -1)

    def test_input_that_does_not_fit_is_bad_input(self) -> None:
        @activity
        def greet(name: int) -> str:
            return "never"

        with self.serving(greet):
            self.assertEqual(self.client.run("Greet", {"name": "a"}), "BadInput: input.name: an integer is expected, not 'a'")

    def test_attempts_run_beside_each_other_up_to_the_concurrency(self) -> None:
        meet, most = threading.Barrier(3), [0, 0]
        lock = threading.Lock()

        @activity
        def greet(name: str) -> str:
            with lock:
                most[0] += 1
                most[1] = max(most)
            meet.wait(PATIENCE_S)
            with lock:
                most[0] -= 1
            return name

        with self.serving(greet, concurrency=3):
            runs = [self.client.start("Greet", {"name": str(n)}).id for n in range(9)]
            self.assertEqual([self.client.wait(run) for run in runs], [str(n) for n in range(9)])
        self.assertEqual(most[1], 3)

    def test_a_weaker_promise_than_the_flow_wants_is_not_used(self) -> None:
        @activity(effect="once")
        def greet(name: str) -> str:
            return "never"

        with self.serving(greet) as worker:
            until("the session", lambda: worker.connected)
            self.client.start("Greet", {"name": "a"}, id="weak")
            waiting = until("the reason", lambda: self.client.show("weak").waiting_for)
        self.assertEqual(waiting["kind"], "activity")

    def test_a_worker_that_the_runtime_refuses_says_so(self) -> None:
        with self.assertRaisesRegex(WorkerRefused, "without `@` are expected"):
            Worker("a@b", [slow], address=self.world.address).serve()


class Signs(WorldTest):
    def test_partial_output_is_shown_while_the_attempt_runs(self) -> None:
        seen = threading.Event()

        @activity
        def greet(name: str, context: Context) -> str:
            context.percent(50)
            context.progress("half ")
            context.progress("way\ud800")
            seen.wait(PATIENCE_S)
            return "whole"

        with self.serving(greet):
            run = self.client.start("Greet", {"name": "a"})
            said = ""
            for frame in self.client.watch(run.id):
                if frame.event == "partial":
                    said += frame.data.get("text", "")
                if said == "half way\ufffd":
                    seen.set()
            self.assertTrue(seen.is_set(), said)

    def test_silence_is_ended_if_signs_are_the_functions_own(self) -> None:
        """An attempt that hangs is noticed by its silence; the next one gives signs by itself and takes longer than that."""

        @activity(heartbeat="manual")
        def silent(name: str, context: Context) -> str:
            if context.attempt == 1:
                context.cancelled.wait(PATIENCE_S)
                context.check()
            end = time.monotonic() + 2.5
            while time.monotonic() < end:
                context.heartbeat()
                context.cancelled.wait(0.05)
            return f"attempt {context.attempt}, {context.why}"

        with self.serving(silent):
            self.assertEqual(self.client.run("Silent", {"name": "a"}, id="s"), "attempt 2, None")
        self.assertEqual([kind for kind in self.world.kinds("s") if kind in ("failed", "lost", "done")], ["failed", "done"])

    def test_signs_of_life_come_by_themselves(self) -> None:
        @activity
        def silent(name: str, context: Context) -> str:
            # Twice as long as the flow's patience with silence.
            context.cancelled.wait(3.0)
            return f"attempt {context.attempt}"

        with self.serving(silent):
            self.assertEqual(self.client.run("Silent", {"name": "a"}), "attempt 1")

    def test_an_attempt_whose_time_is_over_is_stopped_and_tried_again(self) -> None:
        ends: list[str | None] = []

        @activity
        async def timed(name: str, context: Context) -> str:
            if context.attempt == 1:
                try:
                    await asyncio.sleep(PATIENCE_S)
                finally:
                    ends.append(context.why)
            return f"attempt {context.attempt}"

        with self.serving(timed):
            self.assertRegex(self.client.run("Timed", {"name": "a"}), "^attempt [23]$")
        # Whoever is first: the worker's own clock, or the runtime's word.
        self.assertIn(ends, (["timeout"], ["cancelled"]))


class Cancels(WorldTest):
    def test_cancels_reach_attempts_at_once(self) -> None:
        begun, ended = threading.Event(), threading.Event()

        @activity(name="slow")
        def plain(name: str, context: Context) -> str:
            begun.set()
            context.cancelled.wait(PATIENCE_S)
            ended.set()
            context.check()
            return "never"

        @activity(name="slow")
        async def cooperative(name: str) -> str:
            begun.set()
            try:
                await asyncio.sleep(PATIENCE_S)
            finally:
                ended.set()
            return "never"

        for kind, function in (("plain", plain), ("async", cooperative)):
            begun.clear(), ended.clear()
            with self.subTest(kind=kind), self.serving(function) as worker:
                run = self.client.start("Slow", {"name": kind}, id=kind)
                self.assertTrue(begun.wait(PATIENCE_S))
                at = time.monotonic()
                self.client.cancel(run.id)
                self.assertTrue(ended.wait(PATIENCE_S))
                # Not with the end of a long poll, which is ten seconds away.
                self.assertLess(time.monotonic() - at, 8.0)
                until("an empty desk", lambda: worker._desk.running() + worker._desk.unacknowledged() == 0)
                self.assertEqual(self.client.show(run.id).outcome.kind, "cancelled")

    def test_an_isolated_attempt_that_does_not_listen_is_killed(self) -> None:
        mark = self.world.work / "pid"
        with self.serving(slow):
            run = self.client.start("Slow", {"name": str(mark)}, id="deaf")
            pid = int(until("the attempt's process", lambda: mark.exists() and mark.read_text()))
            self.assertNotEqual(pid, os.getpid())
            self.client.cancel(run.id)
            until("its end", lambda: not Path(f"/proc/{pid}").exists())

    def test_an_isolated_attempt_gives_results_and_failures(self) -> None:
        with self.serving(slow):
            self.assertRegex(self.client.run("Slow", {"name": "quick"}), r"^done by \d+$")
            self.assertEqual(self.client.run("Slow", {"name": "broken"}), "Crashed: RuntimeError: broken")

    def test_an_isolated_attempt_ends_with_its_worker(self) -> None:
        mark = self.world.work / "pid"
        script = self.world.work / "isolated.py"
        script.write_text(
            f"import sys\nsys.path.insert(0, {str(Path(__file__).parent)!r})\n"
            "from test_worker import slow\nfrom outlast import Worker\n"
            "if __name__ == '__main__':\n    Worker('isolated', [slow], queues=['py']).serve()\n"
        )
        environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OUTLAST_URL": self.world.address}
        worker = subprocess.Popen([sys.executable, str(script)], env=environment)
        self.addCleanup(worker.wait)
        self.addCleanup(worker.kill)
        self.client.start("Slow", {"name": str(mark)}, id="orphan")
        pid = int(until("the attempt's process", lambda: mark.exists() and mark.read_text()))
        worker.kill()
        until("the end of its process", lambda: not _lives(pid))


class Drains(WorldTest):
    def test_a_leaving_worker_ends_what_it_has_and_takes_no_more(self) -> None:
        self.world.gate("a", "before")
        worker = self.world.worker("1")
        self.client.start("Slow", {"name": "a"}, id="a")
        self.world.reached("a", "before")
        worker.send_signal(signal.SIGTERM)
        self.client.start("Slow", {"name": "b"}, id="b")
        (self.world.work / "a.before.gate").unlink()
        self.assertEqual(self.client.wait("a", timeout=PATIENCE_S), "the first attempt")
        self.assertEqual(worker.wait(PATIENCE_S), 0)
        waiting = until("the reason", lambda: self.client.show("b").waiting_for)
        self.assertEqual((waiting["kind"], [line["name"] for line in self.world.ledger()]), ("worker", ["a"]))

    def test_an_idle_worker_leaves_at_once(self) -> None:
        worker = self.world.worker()
        self.client.run("Slow", {"name": "a"})
        at = time.monotonic()
        self.assertEqual(terminate(worker), 0)
        self.assertLess(time.monotonic() - at, 10.0)

    def test_what_does_not_end_in_time_is_given_to_another_worker(self) -> None:
        @activity(name="slow")
        async def endless(name: str) -> str:
            await asyncio.sleep(PATIENCE_S)
            return "never"

        @activity(name="slow")
        async def quick(name: str, context: Context) -> str:
            return "the other one"

        with self.serving(endless, drain=0.1) as first:
            self.client.start("Slow", {"name": "a"}, id="a")
            until("the attempt", lambda: first._desk.running())
        with self.serving(quick):
            self.assertEqual(self.client.wait("a", timeout=PATIENCE_S), "the other one")


class Leases(unittest.TestCase):
    def test_attempts_end_a_quarter_before_the_lease_and_only_if_calls_fail(self) -> None:
        fence = Fence()
        fence.set_lease(400)
        sent = boot_ms() + 1_000
        fence.renewed(sent)
        self.assertFalse(fence.is_over(sent + 10_000), "slept, but nothing failed yet")
        fence.failed()
        for after, over in [(0, False), (299, False), (300, True), (400, True)]:
            self.assertEqual(fence.is_over(sent + after), over, after)
        fence.renewed(sent - 500)
        fence.failed()
        self.assertFalse(fence.is_over(sent + 299), "an older call that is answered late takes nothing back")


def _lives(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False


if __name__ == "__main__":
    unittest.main()
