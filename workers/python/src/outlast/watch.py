"""Follows a run: its stream of server-sent events, opened again where it broke off.

Leaves what is watched, and for how long a server may be away, to ``client``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .limits import STREAM_SILENT_S
from .patience import Patience
from .transport import BROKEN, ApiError, Connection, Unreachable, judge
from .views import Frame, run_path

if TYPE_CHECKING:
    from .client import Client


class Watch:
    """The stream of a run, opened again whenever it breaks; ``close`` may come from another thread."""

    def __init__(self, client: Client, run: str, last: str | None, partials: bool) -> None:
        self._client = client
        self._run = run
        self._last = last
        self._partials = partials
        self._connection: Connection | None = None
        self._closed = False
        self._patience = Patience(client._patience)

    def close(self) -> None:
        self._closed = True
        if self._connection is not None:
            self._connection.abort()

    def __iter__(self) -> Iterator[Frame]:
        fresh = self._last is None
        while not self._closed:
            try:
                for frame in self._frames():
                    if self._closed:
                        return
                    # Where the run stands comes first whenever a stream is opened without a place; once is enough.
                    if frame.id is not None:
                        self._last = frame.id
                    elif frame.event == "partial" and not self._partials:
                        continue
                    elif frame.event == "state" and not fresh:
                        continue
                    fresh = False
                    yield frame
                    if frame.event == "ended":
                        return
            except Unreachable:
                if self._patience.is_over():
                    raise
            except ApiError as error:
                if error.status != 503 or self._patience.is_over(error.retry_after or 0):
                    raise
            if self._closed or self._has_ended():
                return
            self._patience.wait()

    def _has_ended(self) -> bool:
        """Tells whether a stream that ended has nothing more to give: it was resumed after the frame that says so."""
        if self._last is None:
            return False
        try:
            run = self._client.show(self._run)
        except (Unreachable, ApiError):
            return False
        number = int(self._last.rpartition("/")[2].partition(".")[0])
        return run.status == "ended" and number >= run.events

    def _frames(self) -> Iterator[Frame]:
        headers = {"accept": "text/event-stream"}
        if self._last is not None:
            headers["last-event-id"] = self._last
        self._connection = connection = self._client._transport.connection()
        try:
            path = f"{run_path(self._run)}/stream"
            response = connection.begin("GET", path, timeout=STREAM_SILENT_S, headers=headers)
            if self._closed:
                # It came before there was a connection to end.
                return
            try:
                if response.status != 200:
                    judge(response, response.read())
                self._patience.renew()
                yield from read_frames(iter(response.readline, b""))
            except BROKEN as error:
                if isinstance(error, Unreachable):
                    raise
                raise Unreachable(f"the stream of {self._run} broke off: {error}", True) from None
        finally:
            connection.close()


def read_frames(lines: Iterator[bytes]) -> Iterator[Frame]:
    """Reads server-sent events; one that is cut off is dropped, and comes again."""
    fields: dict[str, str] = {}
    for line in lines:
        text = line.decode("utf-8").rstrip("\r\n")
        if text.startswith(":"):
            continue
        if text:
            name, _, value = text.partition(":")
            fields[name] = value.removeprefix(" ")
        elif fields:
            yield Frame(fields.get("event", "message"), json.loads(fields["data"]), fields.get("id"))  # type: ignore[arg-type]
            fields = {}
