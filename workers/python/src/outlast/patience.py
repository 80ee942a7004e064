"""How long a client bears that the server is away.

Leaves what failed, and whether it may be tried again, to its callers. Invariant: patience begins with the first failure, not with the
call, so a call that has waited for an hour is borne as long as one that has just begun.
"""

from __future__ import annotations

import time

from .limits import RECONNECT_S_MAX, RECONNECT_S_MIN


class Patience:
    """For one call or stream: waits after each failure, a little longer each time, until it is at its end."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.renew()

    def renew(self) -> None:
        """Something succeeded: the next failure is a first one."""
        self._end: float | None = None
        self._wait = RECONNECT_S_MIN

    def is_over(self, at_least: float = 0) -> bool:
        """Tells whether there is no time left for the next wait; ``at_least`` is what the server asked for, in seconds."""
        now = time.monotonic()
        if self._end is None:
            self._end = now + self._seconds
        self._wait = max(self._wait, at_least)
        return now + self._wait >= self._end

    def wait(self) -> None:
        """Waits until it may be tried again."""
        time.sleep(self._wait)
        self._wait = min(self._wait * 2, RECONNECT_S_MAX)
