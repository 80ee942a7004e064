"""A client for drivers: start runs, look at them, feed them, follow them.

Leaves doing the work to workers. A call that is safe to repeat is repeated while the server is away or busy, up to ``patience``
seconds: ids that would be made up by the server are made up here, so that a request that was sent twice counts once. What is not
safe to repeat is repeated only if it was not sent.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, urlencode

from .forms import duration_text, parse_duration
from .limits import CLIENT_PATIENCE_S, CLIENT_S, WAIT_S_MAX
from .patience import Patience
from .schemas import to_json
from .transport import ApiError, Transport, Unreachable
from .views import (
    Frame,
    InvalidFlow,
    Json,
    Page,
    Result,
    Run,
    RunCancelled,
    RunFailed,
    RunTerminated,
    Status,
    read_outcome,
    read_run,
    run_path,
)
from .watch import Watch

__all__ = ["Client"]

Wait = timedelta | str | float


class Client:
    """Calls one server. Safe to use from several threads: every call has its own connection."""

    def __init__(
        self,
        address: str | None = None,
        token: str | None = None,
        *,
        cafile: str | None = None,
        timeout: float = CLIENT_S,
        patience: float = CLIENT_PATIENCE_S,
    ) -> None:
        self._transport = Transport(address, token, cafile)
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
        return read_run(self._again("POST", "/v1/runs", start))

    def show(self, run: str) -> Run:
        """Returns a run."""
        return read_run(self._again("GET", run_path(run)))

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
        return Page([read_run(item) for item in page["items"]], page["next"])

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
            found = self._again("GET", f"{run_path(run)}/result{query}", timeout=left + self._timeout)
            if found["status"] == "ended" or time.monotonic() >= end:
                return Result(found["id"], found["status"], read_outcome(found.get("outcome")), found.get("waiting_for"))

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
        return self._again("POST", f"{run_path(run)}/messages{wait}", message, timeout=timeout)

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

    def delete(self, run: str) -> None:
        """Deletes a run that has ended, with its history; runs that were forked from it keep what they share."""
        self._once("DELETE", run_path(run))

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
        return read_run(self._again("POST", f"{run_path(run)}/fork", {"id": id or f"py-{uuid.uuid4().hex}", **body}))

    def tree(self, run: str) -> list[Run]:
        """Lists the runs that share history with this one."""
        return [read_run(item) for item in self._again("GET", f"{run_path(run)}/tree")["items"]]

    def way(self, run: str) -> list[str]:
        """Lists the states that a run went through."""
        items: list[str] = self._again("GET", f"{run_path(run)}/way")["items"]
        return items

    def events(self, run: str, *, after: int = 0, limit: int | None = None) -> Page[Json]:
        """Returns a page of a run's history, after an event."""
        page = self._again("GET", f"{run_path(run)}/events{_query(after=after, limit=limit)}")
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
        yield from Watch(self, run, last, partials)

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
        return read_run(self._once("POST", f"{_schedule(name)}/run-now"))

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
        accepted: int = self._once("POST", f"{run_path(run)}/{what}", body)["accepted"]
        return accepted

    def _again(self, method: str, path: str, body: Any = None, *, timeout: float | None = None) -> Any:
        return self._call(method, path, body, timeout or self._timeout, True)

    def _once(self, method: str, path: str, body: Any = None) -> Any:
        return self._call(method, path, body, self._timeout, False)

    def _call(self, method: str, path: str, body: Any, timeout: float, repeatable: bool) -> Any:
        patience = Patience(self._patience)
        while True:
            try:
                return self._transport.call(method, path, body, timeout=timeout)
            except Unreachable as error:
                if (error.sent and not repeatable) or patience.is_over():
                    raise
            except ApiError as error:
                # 503 says that nothing was done; later it may be.
                if error.status != 503 or patience.is_over(error.retry_after or 0):
                    raise
            patience.wait()


def _some(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _query(**fields: Any) -> str:
    some = _some(**fields)
    return f"?{urlencode(some)}" if some else ""


def _schedule(name: str) -> str:
    return f"/v1/schedules/{quote(name, safe='')}"


def _seconds(wait: Wait) -> float:
    if isinstance(wait, str):
        wait = parse_duration(wait)
    return wait.total_seconds() if isinstance(wait, timedelta) else float(wait)
