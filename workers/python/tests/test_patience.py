"""How long a client bears that the server is away, on a clock that the test sets."""

from __future__ import annotations

import unittest
from typing import Any
from unittest import mock

from outlast import ApiError, Client, Unreachable
from outlast.patience import Patience


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class PatienceTest(unittest.TestCase):
    def setUp(self) -> None:
        self.clock = Clock()
        patched = mock.patch("outlast.patience.time", self.clock)
        patched.start()
        self.addCleanup(patched.stop)

    def test_it_begins_with_the_first_failure_and_anew_with_what_succeeds(self) -> None:
        patience = Patience(30)
        self.clock.now += 3_600
        self.assertFalse(patience.is_over())
        while not patience.is_over():
            patience.wait()
        self.assertTrue(3_628 <= self.clock.now - 1_000 <= 3_630)
        patience.renew()
        self.assertFalse(patience.is_over())
        self.assertTrue(patience.is_over(at_least=31), "a server that asks for more than there is")

    def test_a_call_that_breaks_after_a_long_wait_is_made_again(self) -> None:
        clock = self.clock
        answers: list[Any] = [
            Unreachable("it broke off", True),
            ApiError(503, {"code": "not_ready"}, {}, None),
            {"id": "r", "status": "ended"},
        ]

        def call(*_args: Any, **_more: Any) -> Any:
            clock.now += 60
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        client = Client("http://127.0.0.1:1", patience=90)
        with mock.patch.object(client._transport, "call", call):
            self.assertEqual(client.result("r").status, "ended")
        self.assertEqual(answers, [])


if __name__ == "__main__":
    unittest.main()
