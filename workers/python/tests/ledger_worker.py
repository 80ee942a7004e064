"""A worker for tests: its activities leave a line in a ledger and stop at gates, so that a test can count and kill exactly.

``ledger_worker.py DIRECTORY [CONCURRENCY]``. A gate that the test has closed is marked as reached and holds the attempt until it is
opened. A line is on disk before the attempt goes on.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from pathlib import Path

from outlast import Context, Happened, NotHappened, Verdict, Worker, activity

DIRECTORY = Path(sys.argv[1])


def lines() -> list[dict[str, object]]:
    path = DIRECTORY / "ledger.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def passes(name: str, at: str) -> None:
    gate = DIRECTORY / f"{name}.{at}.gate"
    if not gate.exists():
        return
    gate.with_suffix(".reached").touch()
    while gate.exists():
        time.sleep(0.002)


def write(context: Context, name: str) -> str:
    passes(name, "before")
    line = {"name": name, "run": context.run, "key": context.key, "attempt": context.attempt, "handle": context.handle}
    with open(DIRECTORY / "ledger.jsonl", "a") as file:
        file.write(json.dumps({**line, "pid": os.getpid()}) + "\n")
        file.flush()
        os.fsync(file.fileno())
    passes(name, "after")
    return context.key


@activity(effect="once")
def ledger(name: str, context: Context) -> str:
    return write(context, name)


@activity(effect="once")
def doubtful(name: str, context: Context) -> str:
    return write(context, name)


@activity(effect="pure")
def ledger_effect(name: str, context: Context) -> Verdict[str]:
    # The key of the operation that is asked about comes with the question.
    found = [line for line in lines() if line["key"] == context.key]
    return Happened(context.key) if found else NotHappened()


@activity(effect="idempotent")
def slow(name: str, context: Context) -> str:
    """Begins a job elsewhere, once, and waits for its end; a later attempt finds it by its handle."""
    if context.handle is None:
        context.save_handle({"job": f"job-of-{context.attempt}"})
    write(context, name)
    return (context.handle or {}).get("job", "the first attempt")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    offered = [ledger, doubtful, ledger_effect, slow]
    Worker("ledger", offered, queues=["py"], concurrency=int(sys.argv[2]) if len(sys.argv) > 2 else 4, drain=60).serve()
