"""What a server shows: runs, questions, results, frames, and how a run ended badly; and how each is read.

Leaves asking for them to ``client`` and ``watch``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Generic, Literal, TypeVar
from urllib.parse import quote

from .transport import ApiError

__all__ = [
    "Frame", "InvalidFlow", "Outcome", "Page", "Question", "Result", "Run", "RunCancelled", "RunEndedBadly", "RunFailed",
    "RunTerminated",
]  # fmt: skip

T = TypeVar("T")
Json = Any
Status = Literal["running", "waiting", "blocked", "ended"]


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


def read_outcome(view: Any) -> Outcome | None:
    return None if view is None else Outcome(view["kind"], view.get("value"), view.get("error"))


def read_run(view: Any) -> Run:
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
        outcome=read_outcome(view.get("outcome")),
        parent=view.get("parent"),
        existing=view.get("existing", False),
        raw=view,
    )


def run_path(run: str) -> str:
    return f"/v1/runs/{quote(run, safe='')}"
