"""What a worker has in hand: running attempts, and words for the runtime that it has not acknowledged.

Leaves sending to the loops. A token moves from running to unacknowledged under one lock, so ``holding`` never misses it: the runtime
takes a token that is not listed for one that never arrived. No word that it keeps has a secret in it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import secret
from .context import Cancelled, Context, NoLongerWanted, Partial
from .forms import dump
from .limits import REPORT_BYTES_MAX

log = logging.getLogger("outlast")

BAD_RESULT = "BadResult"


def bad_result(text: str) -> dict[str, Any]:
    """Returns the end of an attempt whose result cannot be reported."""
    return {"kind": "failed", "error": {"kind": BAD_RESULT, "text": text, "retryable": False}}


class Hand:
    """An attempt in hand, as its task and the loops share it."""

    def __init__(self, task: dict[str, Any], desk: Desk, manual: bool) -> None:
        self.task = task
        self.token: str = task["token"]
        self.manual = manual
        self.partial = Partial()
        self.stopped = threading.Event()
        self.why: str | None = None
        self._stopped_at = 0.0
        self.context = Context(task, self, self.stopped, lambda: self.why)
        self.ends_at = self.context._ends_at
        self._desk = desk
        self._on_stop: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    def stop(self, why: str) -> None:
        """Asks the attempt to end; the first reason counts."""
        with self._lock:
            if self.why is not None:
                return
            self.why, self._stopped_at = why, time.monotonic()
            calls = list(self._on_stop)
        self.stopped.set()
        for call in calls:
            call()

    def stopped_for(self) -> float:
        """Returns how many seconds ago it was asked to end."""
        return time.monotonic() - self._stopped_at if self.why else 0.0

    def when_stopped(self, call: Callable[[], None]) -> None:
        """Calls back when the attempt is asked to end, or at once if it was."""
        with self._lock:
            self._on_stop.append(call)
            late = self.why is not None
        if late:
            call()

    def progress(self, text: str) -> None:
        with self._lock:
            self.partial.push(text)
        self._desk.signs.set()

    def percent(self, percent: float) -> None:
        with self._lock:
            self.partial.set_percent(percent)
        self._desk.signs.set()

    def heartbeat(self) -> None:
        with self._lock:
            self.partial.want_sign()
        self._desk.signs.set()

    def save_handle(self, handle: Any) -> None:
        self._desk.tell(self, {"kind": "handle", "handle": handle})

    def due_sign(self, every: float, now: float) -> dict[str, Any] | None:
        """Returns what to send of this attempt now. One that gives its own signs is named again once it must end: it is still here."""
        with self._lock:
            own = self.manual and self.why is None and self.partial._last_sign is not None
            return self.partial.due(self.token, None if own else every, now)

    def was_sent(self, sign: dict[str, Any], now: float) -> None:
        with self._lock:
            self.partial.was_sent(sign, now)

    def silent_for(self, now: float) -> float:
        with self._lock:
            return self.partial.silent_for(now)


@dataclass(eq=False)
class _Entry:
    outcome: dict[str, Any]
    size: int
    told: Callable[[str], None] | None = None


def _entry(token: str, word: dict[str, Any], told: Callable[[str], None] | None = None) -> _Entry:
    outcome = {"token": token, **secret.mask.json(word)}
    return _Entry(outcome, len(dump(outcome)), told)


class Desk:
    """See the module."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.changed = threading.Condition(self._lock)
        """Notified whenever what is in hand, or what is to be reported, changes."""
        self.signs = threading.Event()
        self._running: dict[str, Hand] = {}
        self._outbox: deque[_Entry] = deque()

    def running(self) -> int:
        with self._lock:
            return len(self._running)

    def unacknowledged(self) -> int:
        with self._lock:
            return len(self._outbox)

    def holding(self) -> list[str]:
        """Returns every token that must not be taken for lost, each once."""
        with self._lock:
            return sorted({*self._running, *(entry.outcome["token"] for entry in self._outbox)})

    def hands(self) -> list[Hand]:
        with self._lock:
            return list(self._running.values())

    def begin(self, hand: Hand) -> bool:
        """Takes an attempt in hand; false if its token is in hand already."""
        with self.changed:
            known = hand.token in self._running or any(entry.outcome["token"] == hand.token for entry in self._outbox)
            if not known:
                self._running[hand.token] = hand
                self.changed.notify_all()
            return not known

    def finish(self, token: str, end: dict[str, Any]) -> None:
        """The attempt is over: its end waits to be acknowledged."""
        needless: list[_Entry] = []
        ended = _entry(token, end)
        with self.changed:
            self._running.pop(token, None)
            if end["kind"] == "done":
                # A handle of an attempt that has ended helps nobody, unless it was interrupted.
                needless = [entry for entry in self._outbox if entry.outcome["token"] == token]
                self._outbox = deque(entry for entry in self._outbox if entry not in needless)
            self._outbox.append(ended)
            self.changed.notify_all()
        for entry in needless:
            if entry.told is not None:
                entry.told("superseded")

    def tell(self, hand: Hand, word: dict[str, Any]) -> None:
        """Says something about a running attempt and waits for the answer; raises ``NoLongerWanted``, or ``Cancelled`` if the
        attempt must end before there is one."""
        answered = threading.Event()
        answers: list[str] = []

        def told(status: str) -> None:
            answers.append(status)
            answered.set()

        entry = _entry(hand.token, word, told)
        with self.changed:
            self._outbox.append(entry)
            self.changed.notify_all()
        hand.when_stopped(answered.set)
        answered.wait()
        if not answers:
            raise Cancelled(hand.why)
        if answers != ["accepted"]:
            raise NoLongerWanted("the runtime no longer wants this attempt")

    def cancel(self, token: str) -> None:
        """Stops one attempt that the runtime no longer wants, if it is in hand."""
        with self._lock:
            hand = self._running.get(token)
        if hand is not None:
            log.info("stopping an attempt of %s, operation %s", hand.task["run"], hand.task["op"])
            hand.stop("cancelled")

    def stop_all(self, why: str) -> None:
        for hand in self.hands():
            hand.stop(why)

    def batch(self, most: int) -> list[_Entry]:
        """Returns the oldest unacknowledged words, as many as one report may hold."""
        taken: list[_Entry] = []
        with self._lock:
            size = 0
            for entry in self._outbox:
                size += entry.size
                if len(taken) == most or (taken and size > REPORT_BYTES_MAX):
                    break
                taken.append(entry)
        return taken

    def acknowledged(self, sent: list[_Entry], receipts: list[dict[str, Any]]) -> bool:
        """Drops what was acknowledged; true if something is to be sent again."""
        again = len(receipts) < len(sent)
        for entry, receipt in zip(sent, receipts, strict=False):
            status = receipt.get("status")
            if status == "retry":
                again = True
                continue
            if status != "accepted":
                log.info("a report no longer counts: %s", status)
            self._remove(entry, str(status))
        return again

    def refused(self, entry: _Entry, text: str) -> None:
        """Replaces a word that the runtime refuses as such by one that it can take; gives up what is refused even so."""
        kind = entry.outcome["kind"]
        replaceable = kind == "done" or (kind == "failed" and entry.outcome["error"]["kind"] != BAD_RESULT)
        if not replaceable:
            log.error("the runtime refuses a report: %s", text)
            self._remove(entry, "superseded")
            return
        with self.changed:
            entry.outcome = {"token": entry.outcome["token"], **bad_result(text)}
            self.changed.notify_all()

    def until(self, reached: Callable[[Desk], bool], seconds: float | None = None) -> bool:
        """Waits until ``reached`` says so; false if the time was over before."""
        end = None if seconds is None else time.monotonic() + seconds
        while not reached(self):
            left = None if end is None else end - time.monotonic()
            if left is not None and left <= 0:
                return False
            with self.changed:
                # What changed between the look and the lock is seen at the next round.
                self.changed.wait(0.05 if left is None else min(left, 0.05))
        return True

    def wait_for_words(self, ended: threading.Event) -> None:
        """Waits until there is something to report."""
        with self.changed:
            while not self._outbox and not ended.is_set():
                self.changed.wait()

    def wait_for_room(self, most: int, ended: threading.Event) -> None:
        """Waits until fewer attempts run than may."""
        with self.changed:
            while len(self._running) >= most and not ended.is_set():
                self.changed.wait()

    def ring(self) -> None:
        """Wakes whoever waits here."""
        with self.changed:
            self.changed.notify_all()

    def _remove(self, entry: _Entry, status: str) -> None:
        with self.changed:
            if entry not in self._outbox:
                return
            self._outbox.remove(entry)
            self.changed.notify_all()
        if entry.told is not None:
            entry.told(status)
