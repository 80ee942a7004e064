"""The harness: a runtime of its own for each test, a worker's process that can be killed, a ledger that counts effects.

The binary is found by ``OUTLAST_BIN``. Nothing here sleeps without looking: tests wait for conditions, with a deadline.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from outlast import Client, Worker

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent / "src"
PATIENCE_S = 60.0
LOOK_S = 0.005


def until(what: str, holds: Callable[[], Any]) -> Any:
    """Waits until a condition holds, and returns what it gave."""
    end = time.monotonic() + PATIENCE_S
    while not (found := holds()):
        if time.monotonic() > end:
            raise AssertionError(f"waited in vain for {what}")
        time.sleep(LOOK_S)
    return found


def binary() -> str:
    found = os.environ.get("OUTLAST_BIN")
    if not found:
        raise unittest.SkipTest("OUTLAST_BIN names no binary to test with")
    return found


class World:
    """A runtime with its data directory, and a directory to work in."""

    def __init__(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="outlast-py-"))
        self.work = self.directory / "work"
        self.work.mkdir()
        self.socket = self.directory / "data" / "socket"
        self.address = f"unix:{self.socket}"
        self.http = ""
        self._server: subprocess.Popen[str] | None = None
        self._workers: list[subprocess.Popen[bytes]] = []
        self.client = Client(self.address, token="")

    def serve(self, *arguments: str) -> None:
        """Starts the runtime and waits until it listens."""
        # What this test's workers do not do stays undone: no stock workers.
        command = [binary(), "serve", "--json", "--no-workers", "--data", str(self.directory / "data"), *arguments]
        errors = open(self.directory / "server.log", "ab")
        self._server = subprocess.Popen(
            command, cwd=self.work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True
        )
        errors.close()
        assert self._server.stdout is not None
        for line in self._server.stdout:
            if '"socket"' in line:
                self.http = json.loads(line).get("listening") or ""
                return
        raise AssertionError(f"the runtime does not start: {(self.directory / 'server.log').read_text()}")

    def kill_runtime(self) -> None:
        """Kills the runtime with signal 9."""
        assert self._server is not None
        self._server.kill()
        self._server.wait()
        assert self._server.stdout is not None
        self._server.stdout.close()

    def worker(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Starts the ledger's worker in a process of its own."""
        environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OUTLAST_URL": self.address}
        log = open(self.directory / "worker.log", "ab")
        command = [sys.executable, str(HERE / "ledger_worker.py"), str(self.work), *arguments]
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()
        self._workers.append(process)
        return process

    def gate(self, name: str, at: str) -> Path:
        """Closes a gate of the ledger's worker, ``before`` or ``after`` its line; removing the file opens it."""
        path = self.work / f"{name}.{at}.gate"
        path.touch()
        return path

    def reached(self, name: str, at: str) -> None:
        until(f"{name} at the gate {at}", (self.work / f"{name}.{at}.reached").exists)

    def ledger(self) -> list[dict[str, Any]]:
        path = self.work / "ledger.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def kinds(self, run: str) -> list[str]:
        """Returns the kinds of a run's events."""
        return [event["kind"] for event in self.client.history(run)]

    def close(self) -> None:
        for process in self._workers:
            process.kill()
            process.wait()
        if self._server is not None and self._server.poll() is None:
            self.kill_runtime()
        shutil.rmtree(self.directory, ignore_errors=True)


class WorldTest(unittest.TestCase):
    """A test with a runtime that has the flows of these tests."""

    listen: tuple[str, ...] = ()

    def setUp(self) -> None:
        self.world = World()
        self.addCleanup(self.world.close)
        self.world.serve(*self.listen, str(HERE / "steps.flow"))
        self.client = self.world.client

    @contextmanager
    def serving(self, *activities: Any, **options: Any) -> Iterator[Worker]:
        """A worker in threads of this process."""
        options = {"address": self.world.address, "queues": ["py"], "exit_when_fenced": False, **options}
        with Worker("test", activities, **options) as worker:
            yield worker


def terminate(process: subprocess.Popen[bytes]) -> int:
    """Asks a process to end, and returns its exit code."""
    process.send_signal(signal.SIGTERM)
    return process.wait(PATIENCE_S)
