"""The client against a real runtime, over TCP and the socket, with restarts in between."""

from __future__ import annotations

import asyncio
import socketserver
import threading
import unittest

from support import PATIENCE_S, WorldTest, until

from outlast import (
    ApiError,
    AsyncClient,
    Client,
    InvalidFlow,
    RunCancelled,
    RunFailed,
    RunTerminated,
    Unreachable,
    activity,
)

FAILING = """edition 1
error Broken { why: text }
flow Failing() -> text raises Broken {
  start A
  state A { choose if 1 == 1 -> fail Broken { why: "so" }  else -> fail Broken { why: "never" } }
}
"""


class Access(WorldTest):
    listen = ("--listen", "127.0.0.1:0", "--tokens")

    def test_a_token_opens_what_its_scopes_say(self) -> None:
        root = Client(self.world.address, token="")
        made = root._again("POST", "/v1/tokens", {"name": "py", "scopes": ["read"]})
        known = Client(self.world.http, token=made["token"])
        self.assertTrue(known.flows())
        for client, code, status in (
            (known, "forbidden", 403),
            (Client(self.world.http, token="outlast_guess"), "unauthorized", 401),
            (Client(self.world.http, token=""), "unauthorized", 401),
        ):
            with self.assertRaises(ApiError) as refused:
                client.start("Talk")
            self.assertEqual((refused.exception.code, refused.exception.status), (code, status))
        self.assertEqual(list(root.runs()), [])

    def test_the_file_of_an_authority_must_be_one(self) -> None:
        with self.assertRaises(OSError):
            Client("https://localhost:1", cafile=str(self.world.work / "none.pem"))


class Calls(WorldTest):
    listen = ("--listen", "127.0.0.1:0")

    def test_a_start_is_idempotent(self) -> None:
        first = self.client.start("Talk", id="t")
        again = self.client.start("Talk", id="t")
        self.assertEqual((first.existing, again.existing, again.id), (False, True, "t"))
        with self.assertRaises(ApiError) as refused:
            self.client.start("Greet", {"name": "a"}, id="t")
        self.assertEqual((refused.exception.code, refused.exception.status), ("conflict", 409))
        self.assertNotEqual(self.client.start("Talk").id, self.client.start("Talk").id)

    def test_a_talk_from_start_to_answer(self) -> None:
        run = self.client.start("Talk", id="t", messages=[{"type": "Say", "value": {"text": "first"}}])
        self.assertEqual(self.client.send(run.id, "Say", {"text": "second"}, until="handled").keys(), {"handled"})
        sent = self.client.send(run.id, "Say", {"text": "third"}, message_id="m")
        self.assertEqual(self.client.send(run.id, "Say", {"text": "third"}, message_id="m"), sent, "sent twice, counted once")
        self.client.send(run.id, "Stop")
        waiting = until("the question", lambda: self.client.show("t").questions)
        self.assertEqual((waiting[0].text, waiting[0].to), ("Really?", ["owner"]))
        self.assertIsNone(self.client.result("t").outcome)
        with self.assertRaisesRegex(TimeoutError, "question"):
            self.client.wait("t", timeout="10ms")
        self.client.answer("t", "reject", question=waiting[0].id, shown=waiting[0].shown, note="no")
        self.assertEqual(self.client.wait("t"), "no")
        shown = [frame.data["value"] for frame in self.client.watch("t") if frame.event == "emit"]
        self.assertEqual(shown, ["first", "second", "third"])
        with self.assertRaises(ApiError) as late:
            self.client.send("t", "Stop")
        self.assertEqual(late.exception.code, "run_ended")

    def test_forks_lists_and_histories(self) -> None:
        self.client.start("Talk", id="t")
        self.client.send("t", "Say", {"text": "a"}, until="handled")
        fork = self.client.fork("t", id="f")
        self.assertEqual((fork.parent["run"], self.client.fork("t", id="f").existing), ("t", True))
        self.assertEqual({run.id for run in self.client.tree("t")}, {"t", "f"})
        self.assertEqual({run.id for run in self.client.runs(flow="Talk", status="waiting")}, {"t", "f"})
        page = self.client.list_runs(limit=1)
        self.assertEqual(len(page.items), 1)
        self.assertEqual(len(self.client.list_runs(limit=1, cursor=page.next).items), 1)
        events = self.client.events("t", limit=1)
        self.assertEqual(events.items[0]["kind"], "started")
        numbers = [event["n"] for event in self.client.history("t")]
        self.assertEqual((numbers, max(numbers)), (sorted(numbers), self.client.show("t").events))
        self.assertEqual(self.client.way("t")[0], "Hear")
        self.client.cancel("t")
        with self.assertRaises(RunCancelled):
            self.client.wait("t")
        self.client.terminate("f")
        with self.assertRaises(RunTerminated):
            self.client.wait("f")
        self.client.delete("f")
        self.assertNotIn("f", [run.id for run in self.client.runs()])

    def test_flows_are_deployed_and_their_faults_are_told(self) -> None:
        self.assertEqual([flow["name"] for flow in self.client.deploy(("failing.flow", FAILING))], ["Failing"])
        self.assertIn("Failing", [flow["name"] for flow in self.client.flows()])
        with self.assertRaises(RunFailed) as failed:
            self.client.run("Failing")
        self.assertEqual(failed.exception.error["type"], "Broken")
        with self.assertRaises(InvalidFlow) as invalid:
            self.client.deploy(("bad.flow", "edition 1\nflow"))
        self.assertTrue(invalid.exception.diagnostics)

    def test_schedules_are_kept(self) -> None:
        kept = self.client.put_schedule("nightly", "Talk", ["30 2 * * *"], time_zone="Europe/Berlin")
        self.assertEqual((kept["kept"], self.client.put_schedule("nightly", "Talk", ["30 2 * * *"], time_zone="Europe/Berlin")["kept"]),
                         ("created", "unchanged"))  # fmt: skip
        self.assertTrue(self.client.pause_schedule("nightly")["paused"])
        self.assertFalse(self.client.resume_schedule("nightly")["paused"])
        self.assertEqual(self.client.run_schedule_now("nightly").flow, "Talk")
        self.assertEqual(self.client.schedule("nightly")["name"], self.client.schedules()[0]["name"])
        self.client.remove_schedule("nightly")
        self.assertEqual(self.client.schedules(), [])

    def test_errors_say_what_to_do(self) -> None:
        with self.assertRaises(ApiError) as missing:
            self.client.show("nobody")
        self.assertEqual((missing.exception.status, missing.exception.code, missing.exception.run), (404, "not_found", "nobody"))
        with self.assertRaises(ApiError) as odd:
            self.client.show("a b/../c")
        self.assertEqual(odd.exception.code, "invalid")
        with self.assertRaises(ValueError):
            Client("ftp://nowhere")
        with self.assertRaises(Unreachable):
            Client(f"unix:{self.world.directory}/none", patience=0).status()
        self.assertFalse(Client(f"unix:{self.world.directory}/none").ready())

    def test_tcp_and_a_socket_behind_a_long_path(self) -> None:
        self.assertTrue(Client(self.world.http).ready())
        deep = self.world.directory / ("d" * 90) / ("e" * 90)
        deep.parent.mkdir()
        deep.symlink_to(self.world.socket.parent)
        self.assertTrue(Client(f"unix:{deep}/socket").ready())

    def test_the_same_calls_from_a_loop(self) -> None:
        async def talk() -> list[str]:
            client = AsyncClient(self.world.address)
            run = await client.start("Talk")
            said = []
            await client.send(run.id, "Say", {"text": "a"})
            async for frame in client.watch(run.id):
                if frame.event == "emit":
                    said.append(frame.data["value"])
                    await client.send(run.id, "Stop")
                elif frame.event == "question":
                    await client.answer(run.id, "approve")
            said.append(await client.wait(run.id))
            return said

        self.assertEqual(asyncio.run(talk()), ["a", "approved"])

    def test_the_loop_has_every_call(self) -> None:
        calls, same = ({name for name in vars(kind) if name[0] != "_"} for kind in (Client, AsyncClient))
        self.assertEqual(calls, same)

        async def listed() -> tuple[list[str], list[int]]:
            client = AsyncClient(self.world.address)
            runs = [run.id async for run in client.runs(flow="Talk")]
            return runs, [event["n"] async for event in client.history("t", after=0)]

        self.client.start("Talk", id="t")
        self.assertEqual(asyncio.run(listed()), (["t"], [event["n"] for event in self.client.history("t")]))


class Broken(unittest.TestCase):
    """What a real server does rarely: it answers with bytes that a test made up, one string for each connection."""

    def serve(self, *answers: bytes, hold: bool = False) -> str:
        left, ended = list(answers), threading.Event()

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                while self.rfile.readline().strip():
                    pass
                self.wfile.write(left.pop(0))
                if hold:
                    ended.wait(PATIENCE_S)

        server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for close in (server.server_close, server.shutdown, ended.set):
            self.addCleanup(close)
        return f"http://127.0.0.1:{server.server_address[1]}"

    def test_an_answer_that_is_cut_off_after_its_head_is_none(self) -> None:
        address = self.serve(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n")
        with self.assertRaisesRegex(Unreachable, "broke off"):
            Client(address, patience=0).status()

    def test_a_server_that_is_busy_for_longer_than_the_patience_is_not_waited_for(self) -> None:
        body = b'{"error":{"code":"overloaded","message":"later"}}'
        address = self.serve(b"HTTP/1.1 503 Busy\r\nretry-after: 600\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        with self.assertRaises(ApiError):
            Client(address, patience=30).status()

    def test_a_stream_that_is_cut_off_within_a_chunk_goes_on(self) -> None:
        head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
        frame = b'id: r/1.0\nevent: ended\ndata: {"kind":"done"}\n\n'
        address = self.serve(head + b"%x\r\n" % len(frame) + frame[:30], head + b"%x\r\n" % len(frame) + frame + b"\r\n0\r\n\r\n")
        self.assertEqual([(frame.id, frame.event) for frame in Client(address).watch("r")], [("r/1.0", "ended")])

    def test_a_watch_that_is_left_with_much_unread_leaves_no_thread(self) -> None:
        frames = b"".join(b'id: r/1.%d\nevent: emit\ndata: {"value":1}\n\n' % number for number in range(300))
        address = self.serve(b"HTTP/1.1 200 OK\r\n\r\n" + frames, hold=True)

        async def first() -> str | None:
            watch = AsyncClient(address).watch("left")
            frame = await watch.__anext__()
            # Time for the thread to have read as far ahead as it may.
            await asyncio.sleep(0.2)
            await watch.aclose()  # type: ignore[attr-defined]
            return frame.id

        self.assertEqual(asyncio.run(first()), "r/1.0")
        until("the end of its thread", lambda: not any(each.name == "outlast watch left" for each in threading.enumerate()))


class Restarts(WorldTest):
    def test_a_stream_goes_on_without_a_gap_over_kills(self) -> None:
        self.client.start("Talk", id="t")
        seen: list[tuple[str | None, str]] = []
        done = threading.Event()

        def follow() -> None:
            for frame in self.client.watch("t"):
                if frame.event == "emit":
                    seen.append((frame.id, frame.data["value"]))
            done.set()

        threading.Thread(target=follow, daemon=True).start()
        for number in range(20):
            self.client.send("t", "Say", {"text": str(number)}, message_id=f"m{number}")
            if number % 5 == 4:
                self.world.kill_runtime()
                self.world.serve()
        self.client.send("t", "Stop")
        until("the question", lambda: self.client.show("t").questions)
        self.client.answer("t", "approve")
        self.assertTrue(done.wait(PATIENCE_S))
        self.assertEqual([text for _, text in seen], [str(number) for number in range(20)])
        self.assertEqual(len({id for id, _ in seen}), 20)
        middle = seen[9][0]
        rest = [frame.data["value"] for frame in self.client.watch("t", middle) if frame.event == "emit"]
        self.assertEqual(rest, [str(number) for number in range(10, 20)])
        last = [frame.id for frame in self.client.watch("t")][-1]
        self.assertEqual(list(self.client.watch("t", last)), [], "nothing comes after the end")

    def test_calls_wait_for_a_runtime_that_is_away(self) -> None:
        @activity
        def greet(name: str) -> str:
            return name

        self.world.kill_runtime()
        found: list[object] = []
        thread = threading.Thread(target=lambda: found.append(self.client.run("Greet", {"name": "a"}, id="g")))
        thread.start()
        self.world.serve()
        with self.serving(greet):
            thread.join(PATIENCE_S)
        self.assertEqual(found, ["a"])


if __name__ == "__main__":
    unittest.main()
