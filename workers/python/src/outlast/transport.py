"""Calls to the runtime: JSON over HTTP, over TCP or a Unix socket, with the standard library alone.

Leaves repeating to its callers. An answer is either understood, an ``ApiError`` of the runtime, or no answer at all
(``Unreachable``); a proxy's page is no answer.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
import threading
import time
from typing import Any
from urllib.parse import urlsplit

from .forms import dump
from .limits import ANSWER_BYTES_MAX, CLIENT_S, KEEP_ALIVE_S, SOCKET_PATH_BYTES_MAX

__all__ = ["ApiError", "Connection", "Transport", "Unreachable", "default_address"]


BROKEN = (OSError, http.client.HTTPException, ValueError, AttributeError)
"""What a connection that breaks shows as; ``ValueError`` and ``AttributeError`` if another thread closed its socket."""


class Unreachable(OSError):
    """Nobody answered, or not in our words. ``sent`` tells whether the request may have arrived."""

    def __init__(self, text: str, sent: bool) -> None:
        super().__init__(text)
        self.sent = sent


class ApiError(Exception):
    """The runtime said no: ``code`` says what to do about it, ``message`` and ``hint`` are for people."""

    def __init__(self, status: int, error: dict[str, Any], body: dict[str, Any], retry_after: float | None) -> None:
        self.status = status
        self.code = str(error.get("code", ""))
        self.message = str(error.get("message", ""))
        self.run: str | None = error.get("run")
        self.at: str | None = error.get("at")
        self.hint: str | None = error.get("hint")
        self.body = body
        self.retry_after = retry_after
        super().__init__(f"{self.code}: {self.message}" + (f" ({self.hint})" if self.hint else ""))


def default_address() -> str:
    """Returns ``OUTLAST_URL``, or else the socket of the data directory that the command line would use."""
    if url := os.environ.get("OUTLAST_URL"):
        return url
    data = os.environ.get("OUTLAST_DATA")
    if not data:
        share = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
        data = os.path.join(share, "outlast")
    return f"unix:{os.path.join(os.path.abspath(data), 'socket')}"


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket; a path that is too long for the system leads through its directory."""

    def __init__(self, path: str, timeout: float | None) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        if len(os.fsencode(self._path)) <= SOCKET_PATH_BYTES_MAX:
            self.sock.connect(self._path)
            return
        directory = os.open(os.path.dirname(self._path), os.O_RDONLY | os.O_DIRECTORY)
        try:
            self.sock.connect(f"/proc/self/fd/{directory}/{os.path.basename(self._path)}")
        finally:
            os.close(directory)


class Transport:
    """Where one runtime is, and as whom it is called."""

    def __init__(self, address: str | None = None, token: str | None = None, cafile: str | None = None) -> None:
        self.address = address or default_address()
        self.token = token if token is not None else os.environ.get("OUTLAST_TOKEN")
        cafile = cafile if cafile is not None else os.environ.get("OUTLAST_CA")
        self._unix: str | None = None
        self._tls: ssl.SSLContext | None = None
        self._host, self._port, self._prefix = "", 0, ""
        if self.address.startswith("unix:"):
            self._unix = self.address[len("unix:") :]
            return
        url = urlsplit(self.address)
        if url.scheme not in ("http", "https") or not url.hostname:
            raise ValueError(f"{self.address!r} is neither http://host:port, https://host nor unix:/path")
        self._tls = ssl.create_default_context(cafile=cafile or None) if url.scheme == "https" else None
        self._host, self._port = url.hostname, url.port or (443 if self._tls else 80)
        self._prefix = url.path.rstrip("/")

    def connection(self) -> Connection:
        """Makes a connection that is opened by its first call."""
        return Connection(self)

    def call(self, method: str, path: str, body: Any = None, *, timeout: float = CLIENT_S) -> Any:
        """Calls over a connection of its own, so that a runtime that was restarted is met afresh."""
        connection = self.connection()
        try:
            return connection.call(method, path, body, timeout=timeout)
        finally:
            connection.close()

    def _open(self, timeout: float) -> http.client.HTTPConnection:
        if self._unix is not None:
            return _UnixConnection(self._unix, timeout)
        if self._tls is not None:
            return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self._tls)
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout)

    def _headers(self, more: dict[str, str]) -> dict[str, str]:
        headers = {"accept": "application/json", **more}
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        return headers


class Connection:
    """One connection, used by one thread at a time; ``abort`` may come from any."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._http: http.client.HTTPConnection | None = None
        self._used = 0.0
        self._aborted = False
        self._lock = threading.Lock()

    def call(self, method: str, path: str, body: Any = None, *, timeout: float = CLIENT_S) -> Any:
        """Sends a request and reads the whole answer; raises ``ApiError`` or ``Unreachable``."""
        response = self.begin(method, path, body, timeout=timeout)
        try:
            data = response.read(ANSWER_BYTES_MAX + 1)
        except BROKEN as error:
            self.close()
            raise Unreachable(f"the answer broke off: {_text(error)}", True) from None
        if len(data) > ANSWER_BYTES_MAX:
            self.close()
            raise Unreachable("an answer without end", True)
        if response.length:
            # Cut off right after its head it would pass for an empty one.
            self.close()
            raise Unreachable("the answer broke off", True)
        self._used = time.monotonic()
        if response.will_close:
            self.close()
        return judge(response, data)

    def begin(
        self, method: str, path: str, body: Any = None, *, timeout: float, headers: dict[str, str] | None = None
    ) -> http.client.HTTPResponse:
        """Sends a request and returns the answer's head."""
        data, more = None, dict(headers or {})
        if method in ("POST", "PUT"):
            data, more["content-type"] = dump({} if body is None else body), "application/json"
        sent = False
        try:
            connection = self._fresh(timeout)
            if connection.sock is None:
                connection.connect()
            if connection.sock is not None:
                connection.sock.settimeout(timeout)
            sent = True
            try:
                connection.request(method, self._transport._prefix + path, data, self._transport._headers(more))
            except (BrokenPipeError, ConnectionResetError):
                # A server that refuses a body may answer before it has read all of it; without an answer the next line fails.
                pass
            return connection.getresponse()
        except BROKEN as error:
            self.close()
            raise Unreachable(f"{self._transport.address} does not answer: {_text(error)}", sent) from None

    def _fresh(self, timeout: float) -> http.client.HTTPConnection:
        if self._aborted or time.monotonic() - self._used > KEEP_ALIVE_S:
            self.close()
        with self._lock:
            self._aborted = False
            if self._http is None:
                self._http = self._transport._open(timeout)
            return self._http

    def abort(self) -> None:
        """Ends the call that another thread has under way, if any."""
        with self._lock:
            self._aborted = True
            sock = self._http.sock if self._http is not None else None
        if sock is not None:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                # It is closed already.
                pass

    def close(self) -> None:
        """Closes it; the next call opens another one."""
        with self._lock:
            connection, self._http = self._http, None
        if connection is not None:
            connection.close()


def judge(response: http.client.HTTPResponse, data: bytes) -> Any:
    try:
        body = json.loads(data) if data.strip() else None
    except ValueError:
        raise Unreachable(f"it answered {response.status} with something that is no JSON", True) from None
    if 200 <= response.status < 300:
        return body
    error = body.get("error") if isinstance(body, dict) else None
    if not isinstance(error, dict):
        raise Unreachable(f"it answered {response.status}", True)
    raise ApiError(response.status, error, dict(body or {}), retry_after(response))


def retry_after(response: http.client.HTTPResponse) -> float | None:
    """Returns how many seconds the server asks to wait, if it does."""
    try:
        return float(response.getheader("retry-after", ""))
    except ValueError:
        return None


def _text(error: BaseException) -> str:
    return str(error) or type(error).__name__
