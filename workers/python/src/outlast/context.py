"""What an attempt knows and can say while it runs.

Leaves sending to the worker: everything here is put down and picked up by its loops. ``save_handle`` returns only after the runtime
has said that the handle is durable.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Protocol

from . import secret
from .forms import dump, parse_time
from .limits import PROGRESS_BATCH_BYTES, PROGRESS_BYTES_MAX
from .schemas import to_json

__all__ = ["Cancelled", "Context", "NoLongerWanted"]


class Cancelled(BaseException):
    """The attempt was asked to end. Raised by ``Context.check``; let it pass.

    Like ``asyncio.CancelledError`` it is no ``Exception``, so that code which catches those does not swallow it.
    """


class NoLongerWanted(Exception):
    """The runtime has closed the operation; end the attempt."""


class Voice(Protocol):
    """How a context is heard: by the worker in this process, or through a pipe by the one that started this process."""

    def progress(self, text: str) -> None: ...
    def percent(self, percent: float) -> None: ...
    def heartbeat(self) -> None: ...
    def save_handle(self, handle: Any) -> None: ...


class Context:
    """One attempt: who it is, and what it can say while it runs. Safe to use from several threads."""

    def __init__(self, task: dict[str, Any], voice: Voice, cancelled: threading.Event, why: Callable[[], str | None]) -> None:
        self.task = task
        """The whole task, as the runtime gave it."""
        self.cancelled = cancelled
        """Set when the attempt is asked to end: a plain function looks at it, or waits on it instead of sleeping."""
        self._voice = voice
        self._why = why
        budget = task.get("budget_ms")
        self._ends_at = None if budget is None else time.monotonic() + budget / 1000

    @classmethod
    def alone(cls, **task: Any) -> Context:
        """Makes a context that no runtime listens to, to try an activity by itself; handles count as durable at once."""
        whole = {"run": "r", "op": "1.0", "attempt": 1, "key": "r/1.0", "activity": "", "effect": "", **task}
        return cls(whole, _Nobody(), threading.Event(), lambda: None)

    @property
    def key(self) -> str:
        """The idempotency key: the same for every attempt of the operation."""
        return str(self.task["key"])

    @property
    def run(self) -> str:
        """The run's id."""
        return str(self.task["run"])

    @property
    def op(self) -> str:
        """The operation, ``n.k``."""
        return str(self.task["op"])

    @property
    def attempt(self) -> int:
        """1, 2, 3 …"""
        return int(self.task["attempt"])

    @property
    def handle(self) -> Any:
        """What an earlier attempt saved to resume with; ``None`` if it saved nothing."""
        return self.task.get("handle")

    @property
    def due(self) -> Any:
        """When the attempt's time is over, as the runtime's clock has it; ``None`` if it is not bounded."""
        due = self.task.get("due")
        return None if due is None else parse_time(due)

    @property
    def why(self) -> str | None:
        """Why the attempt was asked to end: ``timeout``, ``cancelled`` or ``leaving``; ``None`` while it was not."""
        return self._why()

    def remaining(self) -> timedelta | None:
        """Returns the time that is left, if it is bounded."""
        return None if self._ends_at is None else timedelta(seconds=max(0.0, self._ends_at - time.monotonic()))

    def check(self) -> None:
        """Raises ``Cancelled`` if the attempt was asked to end: for loops that do not wait."""
        if self.cancelled.is_set():
            raise Cancelled(self.why or "cancelled")

    def progress(self, text: str) -> None:
        """Shows partial output to whoever watches the run. It is never history."""
        if text:
            self._voice.progress(text)

    def percent(self, percent: float) -> None:
        """Says how far the attempt is, 0 to 100."""
        if not math.isfinite(percent):
            raise ValueError(f"a percentage is a number, not {percent}")
        self._voice.percent(float(percent))

    def heartbeat(self) -> None:
        """Gives a sign of life now. Needed only with ``heartbeat="manual"``; else the worker gives them by itself."""
        self._voice.heartbeat()

    def save_handle(self, handle: Any) -> None:
        """Leaves something for a later attempt to resume with; durable when this returns. Waits: see ``save_handle_async``.

        Raises ``NoLongerWanted`` if the runtime has closed the operation; end the attempt.
        """
        plain = to_json(handle, "handle")
        # What JSON has no form for is told to whoever says it, not to the loop that sends it.
        dump(plain)
        self._voice.save_handle(plain)

    async def save_handle_async(self, handle: Any) -> None:
        """As ``save_handle``, for ``async`` activities."""
        await asyncio.to_thread(self.save_handle, handle)


class _Nobody:
    def progress(self, text: str) -> None: ...
    def percent(self, percent: float) -> None: ...
    def heartbeat(self) -> None: ...
    def save_handle(self, handle: Any) -> None: ...


class Partial:
    """Partial output of one attempt until it is sent.

    ``offset`` counts the characters sent, so a piece that is sent twice is known by its offset, and memory is bounded whatever an
    attempt writes.
    """

    def __init__(self) -> None:
        self._unsent = ""
        # What may begin a secret.
        self._held = ""
        self._unsent_bytes = 0
        self._sent_chars = 0
        self._taken_bytes = 0
        self._percent: float | None = None
        # Signs that were asked for, that are on their way, that the runtime has had.
        self._wanted = self._going = self._given = 0
        self._last_sign: float | None = None

    def push(self, text: str) -> None:
        """Adds text; what is over the limit of an attempt is left out."""
        data = text.encode("utf-8", "outlast.replace")
        room = PROGRESS_BYTES_MAX - self._taken_bytes
        fits = data[:room].decode("utf-8", "ignore")
        # Once something is left out, what follows is, too: a text with a gap would be a lie.
        self._taken_bytes = PROGRESS_BYTES_MAX if len(data) > room else self._taken_bytes + len(data)
        held = self._held + fits
        settled = secret.mask.settled(held)
        shown, self._held = secret.mask.text(held[:settled]), held[settled:]
        self._unsent += shown
        self._unsent_bytes += len(shown.encode())

    def set_percent(self, percent: float) -> None:
        self._percent = percent

    def want_sign(self) -> None:
        self._wanted += 1

    def is_dirty(self) -> bool:
        """Tells whether something was said that is not sent."""
        return bool(self._unsent) or self._percent is not None or self._wanted > self._given

    def is_full(self) -> bool:
        return self._unsent_bytes >= PROGRESS_BATCH_BYTES

    def silent_for(self, now: float) -> float:
        """Returns how long nothing was sent."""
        return 0.0 if self._last_sign is None else now - self._last_sign

    def due(self, token: str, every: float | None, now: float) -> dict[str, Any] | None:
        """Returns what to send now, if anything: what was said, or a sign of life if the last one is ``every`` ago."""
        quiet = every is not None and (self._last_sign is None or now - self._last_sign >= every)
        if not quiet and not self.is_dirty():
            return None
        self._going = self._wanted
        sign: dict[str, Any] = {"token": token}
        if self._unsent:
            sign["offset"] = self._sent_chars
            sign["text"] = self._unsent.encode()[:PROGRESS_BATCH_BYTES].decode("utf-8", "ignore")
        if self._percent is not None:
            sign["percent"] = self._percent
        return sign

    def was_sent(self, sign: dict[str, Any], now: float) -> None:
        """Forgets what the runtime has taken."""
        text = sign.get("text", "")
        self._unsent = self._unsent[len(text) :]
        self._unsent_bytes -= len(text.encode())
        self._sent_chars += len(text)
        if self._percent == sign.get("percent"):
            self._percent = None
        self._given = self._going
        self._last_sign = now
