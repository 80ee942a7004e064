"""Secrets: values of the worker's own environment, which runs know by name only.

What a worker says has ``[secret NAME]`` where a value stood, in clear or as base64, hexadecimal, percent-encoded or JSON text, also where it
is broken over lines or comes in pieces. A name that was not declared gives nothing, whatever the environment holds.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from .limits import SECRET_BYTES_MIN, SECRET_FORM_BYTES_MIN, SECRET_LINE_BYTES_MIN

__all__ = ["Secret"]

_BLANK = re.compile(r"\\[nrt]|[ \t\r\n\f]")
_lock = threading.Lock()
_declared: set[str] = set()


@dataclass(frozen=True)
class Secret:
    """Flow's ``secret``, as a parameter: a name, and the value that this worker has for it."""

    name: str

    @property
    def value(self) -> str:
        """The value. Raises ``Failure`` of kind ``NoSecret`` if the worker was not given it (``Worker(…, secrets=[name])``)."""
        from .activities import Failure

        if self.name not in _declared:
            raise Failure("NoSecret", f"{self.name} is none of the secrets that the worker was given")
        found = os.environ.get(self.name, "")
        if not found.strip():
            raise Failure("NoSecret", f"the variable {self.name} is not set in the environment of the worker")
        return found


def declare(names: Iterable[str]) -> None:
    """Makes variables of this process's environment secrets of its workers."""
    global mask
    with _lock:
        _declared.update(names)
        mask = Mask({name: os.environ.get(name, "") for name in sorted(_declared)})


def declared() -> list[str]:
    """Returns the names of all secrets."""
    return sorted(_declared)


class Mask:
    """Takes secrets out of whatever a worker says."""

    def __init__(self, values: dict[str, str]) -> None:
        named: dict[str, str] = {}
        for name, value in values.items():
            for form in _forms(value):
                named.setdefault(form, name)
        self._names = named
        self._forms = sorted(named, key=len, reverse=True)
        # Looked for from every place, so that those which overlap are all found.
        self._finder = re.compile("(?=(" + "|".join(map(re.escape, self._forms)) + "))") if named else None

    def text(self, text: str) -> str:
        """Returns a text without secrets."""
        found = self.find(text)
        made, done = [], 0
        for start, end, name in found:
            made += [text[done:start], f"[secret {name}]"]
            done = end
        return "".join(made) + text[done:] if found else text

    def find(self, text: str) -> list[tuple[int, int, str]]:
        """Returns where secrets stand, in order; those that overlap are one."""
        if self._finder is None:
            return []
        told, places = _without_blanks(text)
        found: list[tuple[int, int, str]] = []
        for match in self._finder.finditer(told):
            form = match[1]
            start, end = places[match.start()], places[match.start() + len(form) - 1] + 1
            if found and start < found[-1][1]:
                found[-1] = (found[-1][0], max(end, found[-1][1]), found[-1][2])
            else:
                found.append((start, end, self._names[form]))
        return found

    def json(self, value: Any) -> Any:
        """Returns a JSON value without secrets, names of fields and numbers included."""
        if self._finder is None:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self.json(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.json(each) for each in value]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            shown = str(value)
            return value if self.text(shown) == shown else self.text(shown)
        return value

    def settled(self, text: str) -> int:
        """Returns how much of a text can be shown: no secret can begin in it that more text would end."""
        if self._finder is None:
            return len(text)
        whole = max((end for _, end, _ in self.find(text)), default=0)
        if text.endswith("\\"):
            # It may be half of what counts as a blank.
            text = text[:-1]
        told, places = _without_blanks(text)
        for at in range(max(0, len(told) - len(self._forms[0]) + 1), len(told)):
            rest = told[at:]
            if any(len(form) > len(rest) and form.startswith(rest) for form in self._forms):
                return max(whole, places[at])
        return max(whole, len(text))


mask = Mask({})


class Quiet(logging.Filter):
    """Keeps secrets out of the log."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = mask.text(record.getMessage()), ()
        if record.exc_info:
            record.exc_text = mask.text(logging.Formatter().formatException(record.exc_info))
            record.exc_info = None
        return True


logging.getLogger("outlast").addFilter(Quiet())


def _without_blanks(text: str) -> tuple[str, list[int]]:
    """Returns a text without white space, which hides nothing, and where its characters stood."""
    places, at = [], 0
    for blank in _BLANK.finditer(text):
        places += range(at, blank.start())
        at = blank.end()
    places += range(at, len(text))
    return "".join(text[place] for place in places), places


def _forms(value: str) -> set[str]:
    forms = _forms_of_piece(value.strip())
    if "\n" in value.strip():
        for line in map(str.strip, value.splitlines()):
            # What frames a key is no secret.
            if len(line) >= SECRET_LINE_BYTES_MIN and not line.startswith("-----"):
                forms |= _forms_of_piece(line)
    return forms


def _forms_of_piece(value: str) -> set[str]:
    plain, data = _without_blanks(value)[0], value.encode()
    if len(plain) < SECRET_BYTES_MIN:
        return set()
    url = quote(value, safe="")
    urls = {url, url.replace("%20", "+"), quote(value, safe="!'()*"), "".join(f"%{byte:02X}" for byte in data)}
    urls |= {re.sub("%..", lambda each: each[0].lower(), each) for each in urls}
    made = {data.hex(), data.hex().upper(), json.dumps(value, ensure_ascii=False)[1:-1], json.dumps(value)[1:-1], *urls}
    for before in range(3):
        # The digits that are the same whatever stands around the value.
        first, end = -(-before * 8 // 6), (before + len(data)) * 8 // 6
        digits = base64.b64encode(b"\0" * before + data)[first:end].decode()
        made |= {digits, digits.replace("+", "-").replace("/", "_")}
    made = {_without_blanks(form)[0] for form in made}
    return {plain} | {form for form in made if len(form) >= SECRET_FORM_BYTES_MIN}
