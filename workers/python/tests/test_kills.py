"""Kills with signal 9 at exact points: of the worker, of the runtime, of both."""

from __future__ import annotations

import unittest

from support import PATIENCE_S, WorldTest

RUN = {"name": "a"}


class Kills(WorldTest):
    listen = ()

    def test_a_runtime_that_is_killed_gets_the_result_after_its_restart(self) -> None:
        """The worker works on meanwhile, and its result counts once: the ledger has one line."""
        worker = self.world.worker()
        gate = self.world.gate("a", "after")
        self.client.start("Ledger", RUN, id="r")
        self.world.reached("a", "after")
        self.world.kill_runtime()
        gate.unlink()
        self.world.serve()
        key = self.client.wait("r", timeout=PATIENCE_S)
        lines = self.world.ledger()
        self.assertEqual([(line["key"], line["pid"]) for line in lines], [(key, worker.pid)])
        self.assertEqual([kind for kind in self.world.kinds("r") if kind in ("begun", "lost", "done")], ["begun", "done"])

    def test_a_runtime_that_is_killed_again_and_again_costs_nothing(self) -> None:
        self.world.worker()
        gate = self.world.gate("a", "after")
        self.client.start("Doubtful", RUN, id="r")
        self.world.reached("a", "after")
        for _ in range(3):
            self.world.kill_runtime()
            self.world.serve()
        gate.unlink()
        self.assertNotEqual(self.client.wait("r", timeout=PATIENCE_S), "in doubt")
        self.assertEqual(len(self.world.ledger()), 1)

    def test_a_killed_worker_leaves_its_once_effect_in_doubt(self) -> None:
        for at, lines in (("before", 0), ("after", 1)):
            with self.subTest(at=at):
                worker = self.world.worker()
                gate = self.world.gate(at, at)
                self.client.start("Doubtful", {"name": at}, id=at)
                self.world.reached(at, at)
                worker.kill()
                worker.wait()
                self.assertEqual(self.client.wait(at, timeout=PATIENCE_S), "in doubt")
                gate.unlink()
                self.assertEqual(len([line for line in self.world.ledger() if line["name"] == at]), lines)

    def test_a_verifier_settles_what_a_killed_worker_left(self) -> None:
        for at in ("before", "after"):
            with self.subTest(at=at):
                worker = self.world.worker()
                gate = self.world.gate(at, at)
                self.client.start("Ledger", {"name": at}, id=at)
                self.world.reached(at, at)
                worker.kill()
                worker.wait()
                gate.unlink()
                second = self.world.worker()
                key = self.client.wait(at, timeout=PATIENCE_S)
                lines = [line for line in self.world.ledger() if line["name"] == at]
                self.assertEqual([line["key"] for line in lines], [key], "once, whoever wrote it")
                self.assertEqual(lines[0]["pid"], second.pid if at == "before" else worker.pid)
                second.kill()
                second.wait()

    def test_a_saved_handle_survives_the_worker_and_the_runtime(self) -> None:
        for victims in ("worker", "both"):
            with self.subTest(victims=victims):
                worker = self.world.worker()
                gate = self.world.gate(victims, "before")
                self.client.start("Slow", {"name": victims}, id=victims)
                self.world.reached(victims, "before")
                self.assertIn("handle", self.world.kinds(victims), "durable before `save_handle` returns")
                worker.kill()
                worker.wait()
                if victims == "both":
                    self.world.kill_runtime()
                    self.world.serve()
                gate.unlink()
                second = self.world.worker()
                self.assertEqual(self.client.wait(victims, timeout=PATIENCE_S), "job-of-1")
                second.kill()
                second.wait()

    def test_tasks_of_a_killed_worker_go_on_elsewhere(self) -> None:
        first = self.world.worker("1")
        gate = self.world.gate("a", "before")
        for name in ("a", "b", "c"):
            self.client.start("Slow", {"name": name}, id=name)
        self.world.reached("a", "before")
        first.kill()
        first.wait()
        gate.unlink()
        second = self.world.worker("1")
        for name in ("a", "b", "c"):
            self.client.wait(name, timeout=PATIENCE_S)
        self.assertEqual({(line["name"], line["pid"]) for line in self.world.ledger()}, {(n, second.pid) for n in "abc"})


if __name__ == "__main__":
    unittest.main()
