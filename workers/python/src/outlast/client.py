"""A client for drivers: start runs, look at them, feed them, follow them.

Leaves doing the work to workers. A call that is safe to repeat is repeated while the server is away or busy, up to ``patience``
seconds: ids that would be made up by the server are made up here, so that a request that was sent twice counts once. What is not
safe to repeat is repeated only if it was not sent.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Concatenate, Generic, Literal, ParamSpec, TypeVar
from urllib.parse import quote, urlencode

from .forms import duration_text, parse_duration
from .limits import CLIENT_PATIENCE_S, CLIENT_S, RECONNECT_S_MAX, RECONNECT_S_MIN, STREAM_SILENT_S, WAIT_S_MAX
from .schemas import to_json
from .transport import ApiError, Connection, Transport, Unreachable, _judge

__all__ = [
    "AsyncClient", "Client", "Frame", "InvalidFlow", "Outcome", "Page", "Question", "Result", "Run", "RunCancelled", "RunEndedBadly",
    "RunFailed", "RunTerminated",
]  # fmt: skip

T = TypeVar("T")
P = ParamSpec("P")
Json = Any
Status = Literal["running", "waiting", "blocked", "ended"]
Wait = timedelta | str | float


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    kind: Literal["done", "failed", "cancelled", "terminated"]
    value: Json = None
    error: Json = None


@dataclass(frozen=True)
class Question:
    """An open question to a person."""

    id: str
    text: str
    show: Json
    shown: str
    to: list[str]
    editable: bool
    opened_at: str
    path: str
    wanted: Json = None
    due: str | None = None


@dataclass(frozen=True)
class Run:
    """A run as the server shows it; ``raw`` has all of it."""

    id: str
    flow: str
    machine: str
    status: Status
    state: str
    events: int
    cost: Decimal
    started_at: str
    updated_at: str
    profile: str
    questions: list[Question] = field(default_factory=list)
    unread: list[Json] = field(default_factory=list)
    waiting_for: Json = None
    outcome: Outcome | None = None
    parent: Json = None
    existing: bool = False
    raw: Json = field(default=None, repr=False)


@dataclass(frozen=True)
class Result:
    """Where a run stands, in short."""

    id: str
    status: Status
    outcome: Outcome | None = None
    waiting_for: Json = None


@dataclass(frozen=True)
class Page(Generic[T]):
    """A part of a list; ``next`` is the cursor of the next one, ``None`` at the end."""

    items: list[T]
    next: str | None


@dataclass(frozen=True)
class Frame:
    """A frame of a run's stream. Partial output has no ``id``: it is never history."""

    event: Literal["emit", "question", "answered", "state", "ended", "partial"]
    data: Json
    id: str | None = None


class InvalidFlow(ApiError):
    """The flows have faults; ``diagnostics`` has each with its place."""

    @property
    def diagnostics(self) -> Json:
        return self.body.get("diagnostics")


class RunEndedBadly(Exception):
    """The run ended without a result."""

    def __init__(self, run: str, outcome: Outcome) -> None:
        super().__init__(f"{run}: {outcome.kind}" + (f": {outcome.error}" if outcome.error is not None else ""))
        self.run = run
        self.outcome = outcome


class RunFailed(RunEndedBadly):
    """The flow failed; ``error`` is its error."""

    @property
    def error(self) -> Json:
        return self.outcome.error


class RunCancelled(RunEndedBadly):
    """The run was cancelled."""


class RunTerminated(RunEndedBadly):
    """The run was terminated."""


class Client:
    """Calls one server. Safe to use from several threads: every call has its own connection."""

    def __init__(
        self,
        address: str | None = None,
        token: str | None = None,
        *,
        timeout: float = CLIENT_S,
        patience: float = CLIENT_PATIENCE_S,
    ) -> None:
        self._transport = Transport(address, token)
        self._timeout = timeout
        self._patience = patience

    def deploy(self, *files: str | Path | tuple[str, str], profile: str | None = None) -> list[Json]:
        """Deploys flow files: paths, or pairs of a name and a text. Raises ``InvalidFlow``."""
        texts = []
        for each in files:
            name, text = each if isinstance(each, tuple) else (str(each), Path(each).read_text(encoding="utf-8"))
            texts.append({"name": name, "text": text})
        body = _some(files=texts, profile=profile)
        try:
            flows: list[Json] = self._again("POST", "/v1/flows", body)["flows"]
        except ApiError as error:
            if "diagnostics" in error.body:
                raise InvalidFlow(error.status, error.body["error"], error.body, None) from None
            raise
        return flows

    def flows(self) -> list[Json]:
        """Lists the deployed flows."""
        items: list[Json] = self._again("GET", "/v1/flows")["items"]
        return items

    def start(
        self,
        flow: str,
        input: Any = None,
        *,
        id: str | None = None,
        messages: Iterable[Mapping[str, Any]] = (),
        machine: str | None = None,
        profile: str | None = None,
        permissions: Mapping[str, list[str]] | None = None,
    ) -> Run:
        """Starts a run, or finds it: the same id with the same input is the same run, and ``existing`` tells that it was there."""
        start = _some(machine=machine, profile=profile, permissions=permissions)
        start |= {"flow": flow, "input": {} if input is None else to_json(input), "id": id or f"py-{uuid.uuid4().hex}"}
        if first := [{**message, "value": to_json(message.get("value"))} for message in messages]:
            start["messages"] = first
        return _run(self._again("POST", "/v1/runs", start))

    def show(self, run: str) -> Run:
        """Returns a run."""
        return _run(self._again("GET", _path(run)))

    def list_runs(
        self,
        *,
        status: Status | None = None,
        flow: str | None = None,
        profile: str | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> Page[Run]:
        """Returns a page of runs, newest first."""
        query = _query(status=status, flow=flow, profile=profile, cursor=cursor, limit=limit)
        page = self._again("GET", f"/v1/runs{query}")
        return Page([_run(item) for item in page["items"]], page["next"])

    def runs(self, *, status: Status | None = None, flow: str | None = None, profile: str | None = None) -> Iterator[Run]:
        """Gives all runs, page by page."""
        cursor: str | None = None
        while True:
            page = self.list_runs(status=status, flow=flow, profile=profile, cursor=cursor)
            yield from page.items
            cursor = page.next
            if cursor is None:
                return

    def result(self, run: str, wait: Wait = 0) -> Result:
        """Returns where a run stands, after waiting for its end for so long at most (``"30s"``, a ``timedelta`` or seconds)."""
        end = time.monotonic() + _seconds(wait)
        while True:
            left = min(max(end - time.monotonic(), 0), WAIT_S_MAX)
            query = _query(wait=duration_text(timedelta(seconds=left)))
            found = self._again("GET", f"{_path(run)}/result{query}", timeout=left + self._timeout)
            if found["status"] == "ended" or time.monotonic() >= end:
                return Result(found["id"], found["status"], _outcome(found.get("outcome")), found.get("waiting_for"))

    def wait(self, run: str, timeout: Wait | None = None) -> Json:
        """Waits for a run's end and returns its value; raises ``RunFailed``, ``RunCancelled``, ``RunTerminated``, or
        ``TimeoutError`` if the time is over before."""
        found = self.result(run, timedelta(days=36_500) if timeout is None else timeout)
        if found.outcome is None:
            raise TimeoutError(f"run {run} has not ended; it is {found.status}: {found.waiting_for}")
        kind = found.outcome.kind
        if kind == "done":
            return found.outcome.value
        raise {"failed": RunFailed, "cancelled": RunCancelled}.get(kind, RunTerminated)(run, found.outcome)

    def run(self, flow: str, input: Any = None, *, id: str | None = None, timeout: Wait | None = None) -> Json:
        """Starts a run and waits for its value."""
        return self.wait(self.start(flow, input, id=id).id, timeout)

    def send(
        self,
        run: str,
        type: str,
        value: Any = None,
        *,
        message_id: str | None = None,
        until: Literal["accepted", "handled"] = "accepted",
    ) -> Json:
        """Sends a message; with ``until="handled"`` waits until the run took it, or ended without."""
        message = {"type": type, "value": {} if value is None else to_json(value), "id": message_id or uuid.uuid4().hex}
        wait = "?wait=handled" if until == "handled" else ""
        timeout = WAIT_S_MAX * 2 if wait else self._timeout
        return self._again("POST", f"{_path(run)}/messages{wait}", message, timeout=timeout)

    def withdraw(self, run: str, message_id: str) -> int:
        """Pulls back a message that was not taken yet."""
        return self._act(run, "withdraw", {"id": message_id})

    def answer(
        self,
        run: str,
        choice: Literal["approve", "reject", "answer"],
        *,
        question: str | None = None,
        value: Any = None,
        note: str | None = None,
        role: str | None = None,
        shown: str | None = None,
        always: str | None = None,
    ) -> int:
        """Answers a question, which need not be named if exactly one is open."""
        value = None if value is None else to_json(value)
        body = _some(question=question, value=value, note=note, role=role, shown=shown, always=always)
        return self._act(run, "answers", {"choice": choice, **body})

    def cancel(self, run: str) -> int:
        """Asks a run to end; its undos and its ``on cancel`` run first."""
        return self._act(run, "cancel", {})

    def terminate(self, run: str) -> int:
        """Ends a run at once, undoing nothing."""
        return self._act(run, "terminate", {})

    def settle(self, run: str, op: str, verdict: Literal["happened", "not_happened", "fail"], result: Any = None) -> int:
        """Says what became of an operation in doubt."""
        result = None if result is None else to_json(result)
        return self._act(run, "settle", {"op": op, "verdict": verdict, **_some(result=result)})

    def release(self, run: str, op: str) -> int:
        """Gives a held operation fresh attempts."""
        return self._act(run, "release", {"op": op})

    def fork(
        self,
        run: str,
        *,
        at: int | None = None,
        id: str | None = None,
        children: Literal["unknown", "share", "again"] | None = None,
    ) -> Run:
        """Makes a run that shares this one's history up to an event; the parent stays as it is."""
        body = _some(at=at, children=children)
        return _run(self._again("POST", f"{_path(run)}/fork", {"id": id or f"py-{uuid.uuid4().hex}", **body}))

    def tree(self, run: str) -> list[Run]:
        """Lists the runs that share history with this one."""
        return [_run(item) for item in self._again("GET", f"{_path(run)}/tree")["items"]]

    def way(self, run: str) -> list[str]:
        """Lists the states that a run went through."""
        items: list[str] = self._again("GET", f"{_path(run)}/way")["items"]
        return items

    def events(self, run: str, *, after: int = 0, limit: int | None = None) -> Page[Json]:
        """Returns a page of a run's history, after an event."""
        page = self._again("GET", f"{_path(run)}/events{_query(after=after, limit=limit)}")
        return Page(page["items"], page["next"])

    def history(self, run: str, *, after: int = 0) -> Iterator[Json]:
        """Gives a run's history, page by page."""
        while True:
            page = self.events(run, after=after)
            yield from page.items
            if page.next is None:
                return
            after = int(page.next)

    def watch(self, run: str, last: str | None = None, *, partials: bool = True) -> Iterator[Frame]:
        """Follows a run to its end: what was, and then what comes. A broken connection is opened again where it broke off, so frames
        with an id come without a gap and once each; ``last`` goes on after the frame with this id."""
        yield from _Watch(self, run, last, partials)

    def schedules(self) -> list[Json]:
        """Lists the schedules."""
        items: list[Json] = self._again("GET", "/v1/schedules")["items"]
        return items

    def schedule(self, name: str) -> Json:
        """Returns a schedule."""
        return self._again("GET", _schedule(name))

    def put_schedule(
        self,
        name: str,
        flow: str,
        cron: list[str],
        input: Any = None,
        *,
        time_zone: str | None = None,
        overlap: str | None = None,
        catch_up: str | Mapping[str, int] | None = None,
        profile: str | None = None,
        permissions: Mapping[str, list[str]] | None = None,
    ) -> Json:
        """Keeps a schedule; the same definition again changes nothing."""
        options = _some(time_zone=time_zone, overlap=overlap, catch_up=catch_up, profile=profile, permissions=permissions)
        body = {"flow": flow, "cron": cron, "input": {} if input is None else to_json(input), **options}
        return self._again("PUT", _schedule(name), body)

    def remove_schedule(self, name: str) -> None:
        """Removes a schedule; its runs stay."""
        self._once("DELETE", _schedule(name))

    def pause_schedule(self, name: str) -> Json:
        """Pauses a schedule."""
        return self._again("POST", f"{_schedule(name)}/pause")

    def resume_schedule(self, name: str) -> Json:
        """Lets a paused schedule go on."""
        return self._again("POST", f"{_schedule(name)}/resume")

    def run_schedule_now(self, name: str) -> Run:
        """Starts a run of a schedule that is not due."""
        return _run(self._once("POST", f"{_schedule(name)}/run-now"))

    def status(self) -> Json:
        """Returns what the server says of itself."""
        return self._again("GET", "/v1/status")

    def ready(self) -> bool:
        """Tells whether the server takes work; false if it is away."""
        try:
            return bool(self._transport.call("GET", "/health/ready", timeout=self._timeout)["ready"])
        except (Unreachable, ApiError):
            return False

    def _act(self, run: str, what: str, body: Any) -> int:
        accepted: int = self._once("POST", f"{_path(run)}/{what}", body)["accepted"]
        return accepted

    def _again(self, method: str, path: str, body: Any = None, *, timeout: float | None = None) -> Any:
        return self._call(method, path, body, timeout or self._timeout, True)

    def _once(self, method: str, path: str, body: Any = None) -> Any:
        return self._call(method, path, body, self._timeout, False)

    def _call(self, method: str, path: str, body: Any, timeout: float, repeatable: bool) -> Any:
        end, wait = time.monotonic() + self._patience, RECONNECT_S_MIN
        while True:
            try:
                return self._transport.call(method, path, body, timeout=timeout)
            except Unreachable as error:
                if (error.sent and not repeatable) or time.monotonic() + wait >= end:
                    raise
            except ApiError as error:
                # 503 says that nothing was done; later it may be.
                if error.status != 503 or time.monotonic() + wait >= end:
                    raise
                wait = max(wait, error.retry_after or 0)
            time.sleep(wait)
            wait = min(wait * 2, RECONNECT_S_MAX)


class _Watch:
    """The stream of a run, opened again whenever it breaks; ``close`` may come from another thread."""

    def __init__(self, client: Client, run: str, last: str | None, partials: bool) -> None:
        self._client = client
        self._run = run
        self._last = last
        self._partials = partials
        self._connection: Connection | None = None
        self._closed = False

    def close(self) -> None:
        self._closed = True
        if self._connection is not None:
            self._connection.abort()

    def __iter__(self) -> Iterator[Frame]:
        end, wait, fresh = time.monotonic() + self._client._patience, RECONNECT_S_MIN, self._last is None
        while not self._closed:
            try:
                for frame in self._frames():
                    end, wait = time.monotonic() + self._client._patience, RECONNECT_S_MIN
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
                if time.monotonic() + wait >= end:
                    raise
            except ApiError as error:
                if error.status != 503 or time.monotonic() + wait >= end:
                    raise
            if self._closed or self._has_ended():
                return
            time.sleep(wait)
            wait = min(wait * 2, RECONNECT_S_MAX)

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
            path = f"{_path(self._run)}/stream"
            response = connection.begin("GET", path, timeout=STREAM_SILENT_S, headers=headers)
            try:
                if response.status != 200:
                    _judge(response, response.read())
                yield from _events(iter(response.readline, b""))
            except (OSError, ValueError, AttributeError) as error:
                if isinstance(error, Unreachable):
                    raise
                raise Unreachable(f"the stream of {self._run} broke off: {error}", True) from None
        finally:
            connection.close()


def _events(lines: Iterator[bytes]) -> Iterator[Frame]:
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


def _threaded(call: Callable[Concatenate[Client, P], T]) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    async def threaded(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(call, self._client, *args, **kwargs)

    threaded.__doc__ = call.__doc__
    threaded.__name__ = call.__name__
    return threaded


class AsyncClient:
    """``Client`` for ``asyncio``: the same calls, each in a thread (``asyncio.to_thread``), so at most as many at once as the
    loop's default executor has threads."""

    def __init__(
        self,
        address: str | None = None,
        token: str | None = None,
        *,
        timeout: float = CLIENT_S,
        patience: float = CLIENT_PATIENCE_S,
    ) -> None:
        self._client = Client(address, token, timeout=timeout, patience=patience)

    deploy = _threaded(Client.deploy)
    flows = _threaded(Client.flows)
    start = _threaded(Client.start)
    show = _threaded(Client.show)
    list_runs = _threaded(Client.list_runs)
    result = _threaded(Client.result)
    wait = _threaded(Client.wait)
    run = _threaded(Client.run)
    send = _threaded(Client.send)
    withdraw = _threaded(Client.withdraw)
    answer = _threaded(Client.answer)
    cancel = _threaded(Client.cancel)
    terminate = _threaded(Client.terminate)
    settle = _threaded(Client.settle)
    release = _threaded(Client.release)
    fork = _threaded(Client.fork)
    tree = _threaded(Client.tree)
    way = _threaded(Client.way)
    events = _threaded(Client.events)
    schedules = _threaded(Client.schedules)
    schedule = _threaded(Client.schedule)
    put_schedule = _threaded(Client.put_schedule)
    remove_schedule = _threaded(Client.remove_schedule)
    pause_schedule = _threaded(Client.pause_schedule)
    resume_schedule = _threaded(Client.resume_schedule)
    run_schedule_now = _threaded(Client.run_schedule_now)
    status = _threaded(Client.status)
    ready = _threaded(Client.ready)

    async def watch(self, run: str, last: str | None = None, *, partials: bool = True) -> AsyncIterator[Frame]:
        """As ``Client.watch``; a thread of its own reads the stream, and ends with the iteration."""
        loop = asyncio.get_running_loop()
        frames: asyncio.Queue[Frame | BaseException | None] = asyncio.Queue()
        room = threading.Semaphore(64)
        watch = _Watch(self._client, run, last, partials)

        def put(what: Frame | BaseException | None) -> None:
            try:
                loop.call_soon_threadsafe(frames.put_nowait, what)
            except RuntimeError:
                # The loop has ended, and nobody reads any more.
                watch.close()

        def read() -> None:
            try:
                for frame in watch:
                    room.acquire()
                    put(frame)
                put(None)
            except BaseException as error:
                put(error)

        threading.Thread(target=read, name=f"outlast watch {run}", daemon=True).start()
        try:
            while (got := await frames.get()) is not None:
                if isinstance(got, BaseException):
                    raise got
                room.release()
                yield got
        finally:
            watch.close()
            room.release()


def _some(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _query(**fields: Any) -> str:
    some = _some(**fields)
    return f"?{urlencode(some)}" if some else ""


def _path(run: str) -> str:
    return f"/v1/runs/{quote(run, safe='')}"


def _schedule(name: str) -> str:
    return f"/v1/schedules/{quote(name, safe='')}"


def _seconds(wait: Wait) -> float:
    if isinstance(wait, str):
        wait = parse_duration(wait)
    return wait.total_seconds() if isinstance(wait, timedelta) else float(wait)


def _outcome(view: Any) -> Outcome | None:
    return None if view is None else Outcome(view["kind"], view.get("value"), view.get("error"))


def _run(view: Any) -> Run:
    questions = [
        Question(
            **{name: each[name] for name in ("id", "text", "show", "shown", "to", "editable", "opened_at", "path")},
            wanted=each.get("for"),
            due=each.get("due"),
        )
        for each in view.get("questions", ())
    ]
    return Run(
        **{name: view[name] for name in ("id", "flow", "machine", "status", "state", "events", "started_at", "updated_at", "profile")},
        cost=Decimal(view["cost"]),
        questions=questions,
        unread=view.get("unread", []),
        waiting_for=view.get("waiting_for"),
        outcome=_outcome(view.get("outcome")),
        parent=view.get("parent"),
        existing=view.get("existing", False),
        raw=view,
    )
