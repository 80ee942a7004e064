"""A worker: registers its activities, takes tasks, keeps its lease, obeys cancels, and delivers results until they are acknowledged.

Leaves retrying to the flow. Each loop is a thread that waits for a session, calls, and on a broken session waits for the next one.
When ``serve`` returns, every result was acknowledged, or given up after a stated time.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from secrets import token_hex
from types import TracebackType
from typing import Any
from urllib.parse import quote

from . import activities, attempt, secret
from .activities import Activity
from .desk import Desk, Hand
from .limits import (
    CALL_SLACK_S,
    DELIVER_S_MAX,
    DRAIN_S_MAX,
    LONG_POLL_S,
    PROGRESS_EVERY_S,
    REPORT_BATCH_MAX,
    STOP_GRACE_S,
)
from .link import Backoff, Busy, Link, Refused, SessionBroken, boot_ms, reaction
from .transport import ApiError, Transport, Unreachable

__all__ = ["Worker", "WorkerRefused"]

log = logging.getLogger("outlast")

_EXIT_FENCED = 75


class WorkerRefused(Exception):
    """The runtime will not have this worker. Mend what it offers."""


class Worker:
    """Serves activities.

    ``Worker("greeter", [greet]).serve()`` blocks until SIGTERM or SIGINT, then drains; ``with Worker(…):`` serves in threads beside
    your own code. ``concurrency`` is how many attempts run at once. ``address`` is ``http://host:port``, ``https://host`` or
    ``unix:/path``; left out, ``OUTLAST_URL``, else the socket of the user's data directory. ``token`` is needed where the server
    demands one (left out: ``OUTLAST_TOKEN``), ``cafile`` where its certificate is of a private authority (``OUTLAST_CA``). ``secrets``
    names variables of the environment whose values are taken out of whatever the worker says; a ``Secret`` parameter gives them.
    """

    def __init__(
        self,
        name: str,
        offered: Iterable[Callable[..., Any] | Activity],
        *,
        address: str | None = None,
        token: str | None = None,
        cafile: str | None = None,
        queues: Iterable[str] = ("default",),
        profile: str | None = None,
        concurrency: int = 1,
        secrets: Iterable[str] = (),
        drain: float = DRAIN_S_MAX,
        exit_when_fenced: bool = True,
    ) -> None:
        described = [activities.of(each) for each in offered]
        self.activities = {each.name: each for each in described}
        if not described or concurrency < 1:
            raise ValueError("a worker needs activities, and room for one attempt at least")
        if len(self.activities) < len(described):
            raise ValueError(f"an activity is offered twice: {sorted(each.name for each in described)}")
        secret.declare(secrets)
        boot = f"{os.getpid():x}-{token_hex(8)}"
        self._register = {
            "worker": f"{name}-{boot}",
            "boot": boot,
            "queues": list(queues),
            "concurrency": concurrency,
            "activities": [each.offer() for each in described],
        }
        if profile is not None:
            self._register["profile"] = profile
        transport = Transport(address, token, cafile)
        if transport.address.startswith("unix:"):
            # On this computer the runtime sees at once when this process is gone.
            self._register["pid"] = os.getpid()
        self.concurrency = concurrency
        self.drain = drain
        self.exit_when_fenced = exit_when_fenced
        self._desk = Desk()
        self._ended = threading.Event()
        self._link = Link(transport, self._ended)
        self._leaving = threading.Event()
        self._wake = threading.Event()
        self._refused: str | None = None
        self._threads: list[threading.Thread] = []
        self._poll_thread: threading.Thread | None = None
        self._async: _Loop | None = None

    def serve(self) -> None:
        """Serves until SIGTERM, SIGINT or ``stop``, then drains. Waits for a runtime that is away; raises ``WorkerRefused`` if it
        will not have this worker."""
        before = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                before[number] = signal.signal(number, self._hear)
        try:
            self.start()
            self._wake.wait()
        finally:
            self.close()
            for number, handler in before.items():
                signal.signal(number, handler)
        if self._refused is not None:
            raise WorkerRefused(self._refused)

    def _hear(self, number: int, _frame: Any) -> None:
        if self._wake.is_set():
            # Whoever says it twice does not want to wait.
            raise SystemExit(128 + number)
        self._wake.set()

    def stop(self) -> None:
        """Asks ``serve`` to drain and return; from any thread."""
        self._wake.set()

    def start(self) -> None:
        """Begins to serve in threads; ``close`` ends it. A worker serves once."""
        if self._threads:
            raise RuntimeError("a worker serves once; make another one")
        if any(each.is_async for each in self.activities.values()):
            self._async = _Loop()
        self._poll_thread = self._spawn(self._poll)
        for loop in (self._keep_registered, self._report, self._progress, self._control, self._watch):
            self._spawn(loop)

    def close(self) -> None:
        """Drains: takes no more tasks, lets attempts run on for a while, stops the rest, delivers what is left."""
        if not self._threads or self._ended.is_set():
            return
        try:
            self._drain()
        finally:
            self._ended.set()
            self._link.ring()
            self._link.abort()
            self._desk.ring()
            self._desk.signs.set()
            for thread in self._threads:
                thread.join(STOP_GRACE_S * 2)
            self._link.close()
            if self._async is not None:
                self._async.close()

    def __enter__(self) -> Worker:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None) -> None:
        self.close()

    @property
    def connected(self) -> bool:
        """Whether there is a session with the runtime now."""
        return self._link.current() is not None

    def _spawn(self, loop: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=loop, name=f"outlast{loop.__name__}", daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def _drain(self) -> None:
        desk = self._desk
        log.info("leaving with %d attempts in hand", desk.running())
        self._leaving.set()
        desk.ring()
        if self._refused is not None:
            # The lease runs out, and nobody takes what would be reported.
            desk.stop_all("leaving")
            self._until_idle(STOP_GRACE_S * 4)
            return
        busy = desk.running() + desk.unacknowledged() > 0
        self._say_leaving()
        if self._poll_thread is not None:
            # A poll that is under way may bring tasks until the runtime has heard that we leave.
            self._poll_thread.join(STOP_GRACE_S)
        if not desk.until(lambda desk: desk.running() == 0, self.drain):
            desk.stop_all("leaving")
            self._until_idle(STOP_GRACE_S * 4)
        if not desk.until(lambda desk: desk.unacknowledged() == 0, DELIVER_S_MAX):
            log.warning("left with %d results that were not acknowledged", desk.unacknowledged())
        elif busy:
            # With nothing in hand any more, the session ends, and no restart of the runtime waits for this worker.
            self._say_leaving()

    def _until_idle(self, seconds: float) -> None:
        if not self._desk.until(lambda desk: desk.running() == 0, seconds):
            log.error("%d attempts do not listen and end with the process", self._desk.running())

    def _say_leaving(self) -> None:
        session = self._link.current()
        if session is None:
            return
        poll = {"session": session, "max": 0, "wait_ms": 0, "leaving": True}
        try:
            self._link.transport.call("POST", "/v1/workers/poll", poll, timeout=self._link.short())
        except (Unreachable, ApiError):
            # A runtime that does not hear it finds out by the lease.
            pass

    def _keep_registered(self) -> None:
        backoff, said = Backoff(self._ended), ""
        while not self._ended.is_set():
            if self._leaving.is_set() and not self._desk.holding():
                # Whoever has left and has nothing to say stays away.
                return
            request = {**self._register, "holding": self._desk.holding()}
            sent_ms = boot_ms()
            try:
                answer = self._link.transport.call("POST", "/v1/workers/register", request, timeout=self._link.short())
            except (Unreachable, ApiError) as error:
                self._link.fence.failed()
                if isinstance(error, ApiError) and reaction(error.code) == "give_up":
                    self._refused = str(error)
                    self._wake.set()
                    return
                if str(error) != said:
                    said = str(error)
                    log.warning("cannot register yet: %s", said)
            else:
                said = ""
                self._registered(answer, sent_ms)
                if self._link.until_broken():
                    backoff.reset()
            backoff.wait()

    def _registered(self, answer: dict[str, Any], sent_ms: int) -> None:
        log.info("registered as %s, session %s", self._register["worker"], answer["session"])
        if answer.get("lease_ms"):
            self._link.fence.set_lease(answer["lease_ms"])
        self._link.fence.renewed(sent_ms)
        for token in answer.get("drop", ()):
            self._desk.cancel(token)
        self._link.opened(answer["session"])

    def _poll(self) -> None:
        backoff, connection = Backoff(self._ended), self._link.connection()
        while True:
            self._desk.wait_for_room(self.concurrency, self._leaving)
            if self._leaving.is_set():
                return
            session = self._session_unless_leaving()
            if session is None:
                return
            wait = self._long_wait()
            room = self.concurrency - self._desk.running()
            poll = {"session": session, "max": room, "wait_ms": int(wait * 1000), "leaving": False}
            try:
                polled = self._link.call(connection, session, "POST", "/v1/workers/poll", poll, wait + CALL_SLACK_S)
            except SessionBroken:
                continue
            except (Busy, Refused):
                backoff.wait()
                continue
            backoff.reset()
            self._take(session, polled["tasks"])

    def _session_unless_leaving(self) -> str | None:
        while not self._leaving.is_set():
            if session := self._link.current():
                return session
            self._leaving.wait(0.02)
        return None

    def _long_wait(self) -> float:
        return min(LONG_POLL_S, self._link.fence.lease_ms / 3000)

    def _take(self, session: str, tasks: list[dict[str, Any]]) -> None:
        """Begins tasks, unless their session is gone: registering again says, without naming them, that they never arrived."""
        hands = [Hand(task, self._desk, self._is_manual(task["activity"])) for task in tasks]
        with self._link.lasting(session) as lasts:
            taken = [hand for hand in hands if lasts and self._desk.begin(hand)]
        self._desk.signs.set()
        for hand in taken:
            self._begin(hand)

    def _is_manual(self, name: str) -> bool:
        activity = self.activities.get(name)
        return activity is not None and activity.manual_heartbeat

    def _begin(self, hand: Hand) -> None:
        activity = self.activities.get(hand.task["activity"])
        if activity is not None and activity.is_async and self._async is not None:
            self._async.begin(attempt.run_async(activity, hand, self._desk))
        else:
            name = f"outlast {hand.task['activity']} {hand.task['op']}"
            threading.Thread(target=attempt.run, args=(activity, hand, self._desk), name=name, daemon=True).start()

    def _report(self) -> None:
        backoff, connection, most = Backoff(self._ended), self._link.connection(), REPORT_BATCH_MAX
        while True:
            self._desk.wait_for_words(self._ended)
            batch = self._desk.batch(most)
            session = self._link.session()
            if session is None:
                return
            if not batch:
                continue
            report = {"session": session, "results": [entry.outcome for entry in batch]}
            try:
                # Syncing the disk is part of the answer, so this one may take its time.
                answer = self._link.call(connection, session, "POST", "/v1/workers/report", report, CALL_SLACK_S * 2)
            except SessionBroken:
                continue
            except Busy:
                backoff.wait()
                continue
            except Refused as refusal:
                # One of them is not acceptable: find it by sending each alone.
                if len(batch) == 1:
                    self._desk.refused(batch[0], str(refusal))
                most = 1
                continue
            most = REPORT_BATCH_MAX if self._desk.unacknowledged() <= len(batch) else most
            if self._desk.acknowledged(batch, answer["results"]):
                backoff.wait()
            else:
                backoff.reset()

    def _progress(self) -> None:
        backoff, connection, last = Backoff(self._ended), self._link.connection(), 0.0
        while True:
            self._wait_for_signs(last)
            session = self._link.session()
            if session is None:
                return
            last = now = time.monotonic()
            every = self._sign_every()
            due = [(hand, sign) for hand in self._desk.hands() if (sign := hand.due_sign(every, now)) is not None]
            if not due:
                continue
            progress = {"session": session, "tasks": [sign for _, sign in due]}
            try:
                self._link.call(connection, session, "POST", "/v1/workers/progress", progress, self._link.short())
            except SessionBroken:
                backoff.wait()
                continue
            except Busy:
                # Other calls may be answered meanwhile, but none of them says what is in hand here; registering does.
                self._link.lost(session)
                backoff.wait()
                continue
            except Refused as refusal:
                # It is only for show: what is refused is given up.
                log.warning("partial output is refused: %s", refusal)
            for hand, sign in due:
                hand.was_sent(sign, now)
            backoff.reset()

    def _wait_for_signs(self, last: float) -> None:
        """Small pieces become one call; a full buffer goes at once; silence lasts until a sign of life is due."""
        signs = self._desk.signs
        until = last + (self._sign_every() if self._desk.hands() else LONG_POLL_S)
        while not self._ended.is_set():
            hands = self._desk.hands()
            if any(hand.partial.is_full() for hand in hands):
                return
            if any(hand.partial.is_dirty() for hand in hands):
                until = min(until, last + PROGRESS_EVERY_S)
            elif hands:
                until = min(until, last + self._sign_every())
            left = until - time.monotonic()
            if left <= 0:
                return
            if signs.wait(left):
                signs.clear()

    def _sign_every(self) -> float:
        """Returns how often signs of life come: twice as often as wanted, and often enough to keep the lease."""
        lease = self._link.fence.lease_ms / 6
        wanted = min((hand.task.get("heartbeat_ms", 0) / 2 or lease for hand in self._desk.hands()), default=lease)
        return max(min(wanted, lease), 1.0) / 1000

    def _control(self) -> None:
        backoff, connection = Backoff(self._ended), self._link.connection()
        while True:
            session = self._link.session()
            if session is None:
                return
            wait = self._long_wait()
            path = f"/v1/workers/control?session={quote(session, safe='')}&wait_ms={int(wait * 1000)}"
            try:
                control = self._link.call(connection, session, "GET", path, None, wait + CALL_SLACK_S)
            except SessionBroken:
                continue
            except (Busy, Refused):
                backoff.wait()
                continue
            backoff.reset()
            for token in control["cancel"]:
                self._desk.cancel(token)

    def _watch(self) -> None:
        """Ends attempts whose time is over, and all of them before the runtime takes them for lost."""
        warned: set[str] = set()
        while not self._ended.wait(self._tick()):
            hands, fence, now = self._desk.hands(), self._link.fence, time.monotonic()
            for hand in hands:
                silent = hand.manual and hand.silent_for(now) * 1000 >= fence.lease_ms * 3 / 4
                if silent or (hand.ends_at is not None and now >= hand.ends_at):
                    hand.stop("timeout")
            if hands and fence.is_over(boot_ms()):
                log.warning("the runtime has not answered for three quarters of the lease: ending all attempts")
                self._desk.stop_all("leaving")
                if fence.is_over(boot_ms(), eighths=7) and self.exit_when_fenced:
                    log.critical("%d attempts do not listen, and the lease is nearly over: ending the process", len(hands))
                    logging.shutdown()
                    os._exit(_EXIT_FENCED)
            self._warn_of_the_deaf(hands, warned)

    def _tick(self) -> float:
        now = time.monotonic()
        next_end = min((hand.ends_at - now for hand in self._desk.hands() if hand.ends_at is not None), default=0.5)
        return max(min(self._link.fence.lease_ms / 64_000, 0.5, next_end), 0.005)

    def _warn_of_the_deaf(self, hands: list[Hand], warned: set[str]) -> None:
        tokens = {hand.token for hand in hands}
        warned &= tokens
        for hand in hands:
            if hand.why is None or hand.token in warned:
                continue
            deaf = hand.stopped_for() >= STOP_GRACE_S * 2
            if deaf:
                warned.add(hand.token)
                log.warning(
                    "%s was asked to end (%s) and does not listen: its place stays taken until it returns; look at "
                    "context.cancelled in it, or mark it isolated=True",
                    hand.task["activity"],
                    hand.why,
                )


class _Loop:
    """The event loop of ``async`` activities, in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="outlast async", daemon=True)
        self._thread.start()

    def begin(self, work: Any) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        def end() -> None:
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            self._loop.call_soon(self._loop.stop)

        self._loop.call_soon_threadsafe(end)
        self._thread.join(STOP_GRACE_S * 2)
        if not self._thread.is_alive():
            self._loop.close()
