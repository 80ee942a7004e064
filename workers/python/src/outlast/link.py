"""The session with the runtime, shared by all loops: the lease, who may call, and what a failed call means.

Leaves registering to its loop. The lease runs from the *sending* of the last call that was answered, on a clock that goes on while the
machine sleeps, and attempts end a quarter before it does; so the runtime, which waits for the whole of it, never hands out work beside
an attempt that still runs.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .limits import CALL_S_MAX, CALL_S_MIN, LEASE_MS_DEFAULT, RECONNECT_S_MAX, RECONNECT_S_MIN
from .transport import ApiError, Connection, Transport, Unreachable

log = logging.getLogger("outlast")

_REGISTER = {"not_found", "superseded", "unauthorized", "conflict"}
_WAIT = {"mailbox_full", "overloaded", "not_ready", "disk_full", "internal"}


def reaction(code: str) -> str:
    """Sorts refusals by what to do: ``register`` (again), ``wait``, or ``give_up`` this very request."""
    return "register" if code in _REGISTER else "wait" if code in _WAIT else "give_up"


def boot_ms() -> int:
    """Returns milliseconds since boot, time asleep included where the system can tell."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime_ns(clock) // 1_000_000


class Fence:
    """The lease: how long the runtime believes that this worker lives, measured so that the worker gives up first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._renewed_at_ms = boot_ms()
        self._failing = False
        self.lease_ms = LEASE_MS_DEFAULT

    def set_lease(self, lease_ms: int) -> None:
        self.lease_ms = max(lease_ms, 1)

    def renewed(self, sent_ms: int) -> None:
        """A call that was sent at ``sent_ms`` was answered; one that is answered late takes nothing back."""
        with self._lock:
            self._renewed_at_ms = max(self._renewed_at_ms, sent_ms)
            self._failing = False

    def failed(self) -> None:
        """A call was not answered."""
        with self._lock:
            self._failing = True

    def is_over(self, now_ms: int, eighths: int = 6) -> bool:
        """Tells whether so many eighths of the lease are over and the runtime does not answer. A machine that slept finds the lease
        over but nothing failed yet; it asks first."""
        with self._lock:
            return self._failing and (now_ms - self._renewed_at_ms) * 8 >= self.lease_ms * eighths


class Backoff:
    """Waits that double, from the first to the longest."""

    def __init__(self, ended: threading.Event) -> None:
        self._ended = ended
        self._next = RECONNECT_S_MIN

    def wait(self) -> None:
        self._ended.wait(self._next)
        self._next = min(self._next * 2, RECONNECT_S_MAX)

    def reset(self) -> None:
        self._next = RECONNECT_S_MIN


class SessionBroken(Exception):
    """The session is gone: wait for the next one."""


class Busy(Exception):
    """Ask again later."""


class Refused(Exception):
    """This very request is refused."""


class Link:
    """See the module."""

    def __init__(self, transport: Transport, ended: threading.Event) -> None:
        self.transport = transport
        self.fence = Fence()
        self.ended = ended
        self._changed = threading.Condition()
        self._session: str | None = None
        self._proved = False
        self._connections: list[Connection] = []

    def connection(self) -> Connection:
        """Makes a loop's connection; its call ends when the session breaks."""
        connection = self.transport.connection()
        self._connections.append(connection)
        return connection

    def session(self) -> str | None:
        """Waits for a session; ``None`` when the worker ends."""
        with self._changed:
            while self._session is None and not self.ended.is_set():
                self._changed.wait()
            return None if self.ended.is_set() else self._session

    def current(self) -> str | None:
        """Returns the session, if there is one."""
        with self._changed:
            return self._session

    def opened(self, session: str) -> None:
        with self._changed:
            self._session, self._proved = session, False
            self._changed.notify_all()

    @contextmanager
    def lasting(self, session: str) -> Iterator[bool]:
        """Keeps a session from ending meanwhile; tells whether it had not ended before."""
        with self._changed:
            yield self._session == session

    def until_broken(self) -> bool:
        """Waits until there is no session, or the worker ends; tells whether the session was of any use."""
        with self._changed:
            while self._session is not None and not self.ended.is_set():
                self._changed.wait()
            return self._proved

    def lost(self, session: str) -> None:
        """Says that a session is gone: whoever calls within it stops waiting."""
        with self._changed:
            if self._session != session:
                return
            self._session = None
            self._changed.notify_all()
        self.abort()

    def abort(self) -> None:
        """Ends all calls that are under way."""
        for connection in self._connections:
            connection.abort()

    def close(self) -> None:
        """Closes all connections; nobody may call any more."""
        for connection in self._connections:
            connection.close()

    def ring(self) -> None:
        """Wakes whoever waits here."""
        with self._changed:
            self._changed.notify_all()

    def short(self) -> float:
        """Returns the time-out of a short call: several must fail before the lease is over."""
        return min(max(self.fence.lease_ms / 6000, CALL_S_MIN), CALL_S_MAX)

    def call(self, connection: Connection, session: str, method: str, path: str, body: Any, timeout: float) -> Any:
        """Calls within a session; raises ``SessionBroken``, ``Busy`` or ``Refused``."""
        sent_ms = boot_ms()
        try:
            answer = connection.call(method, path, body, timeout=timeout)
        except Unreachable as error:
            if self.current() == session:
                self.fence.failed()
                log.info("%s: the connection to the runtime is lost: %s", path, error)
            self.lost(session)
            raise SessionBroken from None
        except ApiError as error:
            self.fence.failed()
            log.debug("%s: the runtime refused a call: %s", path, error)
            todo = reaction(error.code)
            if todo == "register":
                self.lost(session)
                raise SessionBroken from None
            if todo == "wait":
                raise Busy from None
            raise Refused(error.message) from None
        with self._changed:
            self._proved = True
        self.fence.renewed(sent_ms)
        return answer
