"""The worker's side of the protocol against a runtime that is made up: what a real one does rarely, or late."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from unittest import mock

from support import PATIENCE_S, SOURCE, until

from outlast import Context, Done, Failure, NoLongerWanted, Worker, WorkerRefused, activities, activity, isolated
from outlast.desk import Desk, Hand

Answer = tuple[int, Any]


class Runtime:
    """A runtime that gives the tasks that a test put down, once, and answers as the test says."""

    def __init__(self, lease_ms: int = 30_000) -> None:
        self.lease_ms = lease_ms
        self.calls: list[tuple[str, Any]] = []
        self.tasks: list[dict[str, Any]] = []
        self.answers: dict[str, Callable[[Any], Answer]] = {}
        self.ended = threading.Event()
        self.silent = threading.Event()
        runtime = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                self._answer(self.path.rpartition("/")[2], body)

            def do_GET(self) -> None:
                self._answer("control", None)

            def _answer(self, call: str, body: Any) -> None:
                runtime.calls.append((call, body))
                if runtime.silent.is_set():
                    self.close_connection = True
                    return
                status, answer = runtime.answers.get(call, getattr(runtime, f"_{call}"))(body)
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None: ...

        class Server(ThreadingHTTPServer):
            def handle_error(self, request: Any, client_address: Any) -> None:
                """A worker that hangs up is no fault."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def task(self, activity: str, token: str = "t1", **more: Any) -> None:
        self.tasks.append(task(activity, token, **more))

    def bodies(self, call: str) -> list[Any]:
        return [body for name, body in list(self.calls) if name == call]

    def reported(self) -> list[dict[str, Any]]:
        return [result for body in self.bodies("report") for result in body["results"]]

    def close(self) -> None:
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()

    def _register(self, body: Any) -> Answer:
        return 200, {"session": f"s{len(self.bodies('register'))}", "lease_ms": self.lease_ms, "keep": body["holding"], "drop": []}

    def _poll(self, body: Any) -> Answer:
        if not self.tasks and not body["leaving"]:
            self.ended.wait(0.02)
        taken, self.tasks = self.tasks[: body["max"]], self.tasks[body["max"] :]
        return 200, {"tasks": taken}

    def _report(self, body: Any) -> Answer:
        return 200, {"results": [{"token": result["token"], "status": "accepted"} for result in body["results"]]}

    def _progress(self, body: Any) -> Answer:
        return 200, {}

    def _control(self, body: Any) -> Answer:
        self.ended.wait(0.02)
        return 200, {"cancel": []}


def task(activity: str, token: str = "t1", **more: Any) -> dict[str, Any]:
    named = {"token": token, "run": "r", "op": "1.0", "activity": activity, "attempt": 1, "key": "k", "effect": "once"}
    return {**named, "input": {}, "heartbeat_ms": 10_000, **more}


@activity(isolated=True)
def own_process() -> int:
    return 7


@dataclass
class Even:
    number: int

    def __post_init__(self) -> None:
        if self.number % 2:
            raise ValueError("an even number is expected")


def refusal(status: int, code: str) -> Answer:
    return status, {"error": {"code": code, "message": f"because of {code}"}}


class Protocol(unittest.TestCase):
    def begin(self, *activities: Any, lease_ms: int = 30_000, **options: Any) -> tuple[Runtime, Worker]:
        runtime = Runtime(lease_ms)
        self.addCleanup(runtime.close)
        worker = Worker("w", activities, address=runtime.address, exit_when_fenced=False, drain=1, **options)
        worker.start()
        self.addCleanup(worker.close)
        return runtime, worker

    def test_attempts_end_before_the_lease_does(self) -> None:
        why: list[str | None] = []
        begun = threading.Event()

        @activity
        def work(context: Context) -> str:
            begun.set()
            context.cancelled.wait(PATIENCE_S)
            why.append(context.why)
            raise ValueError("stopped")

        runtime, worker = self.begin(work, lease_ms=400)
        runtime.task("work")
        self.assertTrue(begun.wait(PATIENCE_S))
        runtime.silent.set()
        until("the end of the attempt", lambda: why)
        runtime.silent.clear()
        until("its report", runtime.reported)
        self.assertEqual((why, runtime.reported()[0]), (["leaving"], {"token": "t1", "kind": "stopped", "why": "leaving"}))
        self.assertTrue(worker.connected)

    def test_a_process_with_a_deaf_attempt_ends_before_the_lease_does(self) -> None:
        runtime = Runtime(600)
        self.addCleanup(runtime.close)
        runtime.task("deaf")
        with tempfile.TemporaryDirectory() as directory:
            script = Path(directory) / "deaf.py"
            script.write_text(
                "import threading\nfrom outlast import Worker\n"
                "def deaf() -> None:\n    threading.Event().wait()\n"
                f"Worker('deaf', [deaf], address={runtime.address!r}).serve()\n"
            )
            worker = subprocess.Popen([sys.executable, str(script)], env={"PYTHONPATH": str(SOURCE)}, stderr=subprocess.PIPE)
            try:
                until("a sign of life", lambda: any(body["tasks"] for body in runtime.bodies("progress")))
                runtime.silent.set()
                _, said = worker.communicate(timeout=PATIENCE_S)
            finally:
                worker.kill()
        self.assertEqual(worker.returncode, 75, said)

    def test_results_are_reported_until_they_are_acknowledged(self) -> None:
        @activity
        def work() -> int:
            return 7

        runtime, worker = self.begin(work)
        statuses = [refusal(503, "disk_full"), refusal(404, "not_found"), "retry", "accepted"]

        def report(body: Any) -> Answer:
            status = statuses.pop(0)
            if isinstance(status, tuple):
                return status
            return 200, {"results": [{"token": result["token"], "status": status} for result in body["results"]]}

        runtime.answers["report"] = report
        runtime.task("work")
        until("the acknowledgement", lambda: not statuses and worker._desk.unacknowledged() == 0)
        self.assertEqual(runtime.reported(), [{"token": "t1", "kind": "done", "value": 7}] * 4)
        self.assertEqual([body["holding"] for body in runtime.bodies("register")], [[], ["t1"]])

    def test_a_worker_whose_signs_of_life_are_not_taken_names_what_it_has_by_registering(self) -> None:
        go = threading.Event()

        @activity
        def work() -> int:
            go.wait(PATIENCE_S)
            return 7

        runtime, _ = self.begin(work, lease_ms=600)
        runtime.answers["progress"] = lambda _: refusal(503, "overloaded")
        runtime.task("work")
        until("another registration", lambda: len(runtime.bodies("register")) > 1)
        self.assertEqual(runtime.bodies("register")[1]["holding"], ["t1"])
        del runtime.answers["progress"]
        go.set()
        until("its report", runtime.reported)

    def test_a_result_that_is_refused_as_such_becomes_a_failure(self) -> None:
        @activity
        def work() -> str:
            return "odd"

        @activity
        def good() -> str:
            return "good"

        runtime, worker = self.begin(work, good, concurrency=2)

        def report(body: Any) -> Answer:
            if any(result.get("value") == "odd" for result in body["results"]):
                return refusal(422, "invalid")
            return runtime._report(body)

        runtime.answers["report"] = report
        runtime.task("work")
        runtime.task("good", "t2")
        until("both reports", lambda: len(runtime.bodies("report")) > 2 and worker._desk.unacknowledged() == 0)
        last = {result["token"]: result for result in runtime.reported()}
        self.assertEqual((last["t1"]["error"]["kind"], last["t1"]["error"]["text"]), ("BadResult", "because of invalid"))
        self.assertEqual(last["t2"]["value"], "good")

    def test_a_handle_that_nobody_wants_ends_the_attempt(self) -> None:
        seen: list[type] = []

        @activity
        def work(context: Context) -> None:
            try:
                context.save_handle({"job": 1})
            except NoLongerWanted as error:
                seen.append(type(error))
                raise

        runtime, worker = self.begin(work)
        runtime.answers["report"] = lambda body: (
            200,
            {"results": [{"token": result["token"], "status": "superseded"} for result in body["results"]]},
        )
        runtime.task("work")
        until("the end", lambda: len(runtime.reported()) == 2 and worker._desk.unacknowledged() == 0)
        self.assertEqual([result["kind"] for result in runtime.reported()], ["handle", "stopped"])
        self.assertEqual(seen, [NoLongerWanted])

    def test_a_task_that_comes_twice_is_done_once(self) -> None:
        count, go = [0], threading.Event()

        @activity
        def work() -> int:
            count[0] += 1
            go.wait(PATIENCE_S)
            return count[0]

        runtime, worker = self.begin(work, concurrency=3)
        runtime.task("work")
        runtime.task("work")
        until("both to arrive", lambda: not runtime.tasks)
        polls = len(runtime.bodies("poll"))
        until("further polls", lambda: len(runtime.bodies("poll")) > polls + 1)
        go.set()
        until("the report", lambda: runtime.reported() and worker._desk.unacknowledged() == 0)
        self.assertEqual([result["value"] for result in runtime.reported()], [1])

    def test_a_task_whose_session_is_gone_is_not_begun(self) -> None:
        """Whoever registered meanwhile did not name it, so the runtime gives it out again."""
        begun: list[str] = []

        @activity
        def work(context: Context) -> None:
            begun.append(context.task["token"])

        runtime, worker = self.begin(work)
        until("the session", lambda: worker.connected)
        worker._take("the session before", [task("work", "t1")])
        session = worker._link.current()
        assert session is not None
        worker._take(session, [task("work", "t2")])
        until("the report", runtime.reported)
        self.assertEqual((begun, [result["token"] for result in runtime.reported()]), (["t2"], ["t2"]))

    def test_what_json_has_no_form_for_stops_nobody_else(self) -> None:
        nan = float("nan")

        @activity
        def work(how: str, context: Context) -> Any:
            if how == "handle":
                context.save_handle({"at": nan})
            if how == "percent":
                context.percent(nan)
            if how == "usage":
                return Done(1, usage={"calls": nan})
            if how == "cost":
                raise Failure("Broken", cost="much")  # type: ignore[arg-type]
            return "good"

        @activity
        def lazy() -> Iterable[int]:
            return (1 // 0 for _ in "x")

        runtime, worker = self.begin(work, lazy)
        runtime.task("lazy", "value")
        for how in ("handle", "percent", "usage", "cost", "well"):
            runtime.task("work", how, input={"how": how}, effect="pure")
        until("all reports", lambda: len(runtime.reported()) == 6 and worker._desk.unacknowledged() == 0)
        ends = {result["token"]: result.get("value") or result["error"]["kind"] for result in runtime.reported()}
        crashed, bad = dict.fromkeys(("handle", "percent"), "Crashed"), dict.fromkeys(("usage", "cost", "value"), "BadResult")
        self.assertEqual(ends, {**crashed, **bad, "well": "good"})

    def test_an_async_activity_that_exits_ends_alone(self) -> None:
        @activity
        async def leave() -> None:
            sys.exit("enough")

        @activity
        async def stay() -> str:
            return "here"

        runtime, _ = self.begin(leave, stay)
        runtime.task("leave", "t1", effect="pure")
        runtime.task("stay", "t2")
        until("both reports", lambda: len(runtime.reported()) == 2)
        first, second = runtime.reported()
        self.assertEqual((first["error"]["text"], second["value"]), ("SystemExit: enough", "here"))

    def test_input_that_a_record_refuses_leaves_nothing_in_doubt(self) -> None:
        @activity
        def work(even: Even) -> int:
            return even.number

        runtime, _ = self.begin(work)
        runtime.task("work", input={"even": {"number": 3}})
        error = until("the report", runtime.reported)[0]["error"]
        self.assertEqual((error["kind"], error["text"]), ("BadInput", "an even number is expected"))

    def test_a_worker_that_is_refused_later_stops_what_it_has(self) -> None:
        why: list[str | None] = []

        @activity
        def work(context: Context) -> None:
            context.cancelled.wait(PATIENCE_S)
            why.append(context.why)

        runtime, worker = self.begin(work)
        runtime.task("work")
        until("the attempt", lambda: worker._desk.running())
        runtime.answers["register"] = lambda _: refusal(403, "forbidden")
        runtime.answers["progress"] = lambda _: refusal(404, "not_found")
        runtime.answers["control"] = lambda _: refusal(404, "not_found")
        self.assertTrue(worker._wake.wait(PATIENCE_S))
        worker.close()
        self.assertEqual(why, ["leaving"])

    def test_an_attempt_of_its_own_process_can_be_stopped_after_its_end(self) -> None:
        """Whoever stops it looks at the desk, and may come late."""
        hand = Hand(task("own_process"), Desk(), False)
        self.assertEqual(isolated.run(activities.of(own_process), hand).value, 7)
        with mock.patch("os.kill") as kill, mock.patch("os.killpg") as kill_group:
            hand.stop("timeout")
            time.sleep(0.01)
        self.assertFalse(kill.called or kill_group.called)

    def test_a_report_has_no_more_bytes_than_are_taken(self) -> None:
        desk = Desk()
        for token in ("a", "b", "c"):
            desk.finish(token, {"kind": "done", "value": "x" * 100})
        with mock.patch("outlast.desk.REPORT_BYTES_MAX", 300):
            self.assertEqual([entry.outcome["token"] for entry in desk.batch(64)], ["a", "b"])
        with mock.patch("outlast.desk.REPORT_BYTES_MAX", 10):
            self.assertEqual(len(desk.batch(64)), 1, "one at least")

    def test_a_sign_that_is_given_while_another_is_sent_is_sent_too(self) -> None:
        from outlast.context import Partial

        partial = Partial()
        partial.want_sign()
        sign = partial.due("t", None, 1.0)
        assert sign is not None
        partial.want_sign()
        partial.was_sent(sign, 1.0)
        self.assertTrue(partial.is_dirty())
        partial.was_sent(partial.due("t", None, 2.0) or {}, 2.0)
        self.assertFalse(partial.is_dirty())

    def test_a_worker_that_is_refused_ends(self) -> None:
        @activity
        def work() -> None: ...

        runtime = Runtime()
        self.addCleanup(runtime.close)
        runtime.answers["register"] = lambda _: refusal(422, "invalid")
        with self.assertRaisesRegex(WorkerRefused, "because of invalid"):
            Worker("w", [work], address=runtime.address).serve()

    def test_partial_output_is_bounded_and_cut_between_characters(self) -> None:
        from outlast.context import Partial
        from outlast.limits import PROGRESS_BATCH_BYTES, PROGRESS_BYTES_MAX

        partial = Partial()
        partial.push("日" * (PROGRESS_BATCH_BYTES // 3 + 10))
        self.assertTrue(partial.is_full())
        first = partial.due("t", None, 0.0)
        assert first is not None
        self.assertEqual((first["offset"], len(first["text"].encode())), (0, PROGRESS_BATCH_BYTES // 3 * 3))
        partial.was_sent(first, 0.0)
        second = partial.due("t", None, 0.0)
        assert second is not None
        self.assertEqual((second["offset"], len(second["text"])), (PROGRESS_BATCH_BYTES // 3, 10))
        for _ in range(10):
            partial.push("é" * (PROGRESS_BYTES_MAX // 3))
        self.assertLessEqual(len(partial._unsent.encode()), PROGRESS_BYTES_MAX)


if __name__ == "__main__":
    unittest.main()
