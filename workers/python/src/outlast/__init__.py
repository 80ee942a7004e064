"""Workers and a client for Outlast, a durable runtime for agents.

A worker in ten lines::

    from outlast import Worker, activity

    @activity(effect="pure")
    def greet(name: str) -> str:
        \"\"\"Says hello.\"\"\"
        return f"hello {name}"

    Worker("greeter", [greet]).serve()
"""

from .activities import Activity, DeclaredError, Done, Failure, activity
from .async_client import AsyncClient
from .client import Client
from .context import Cancelled, Context, NoLongerWanted
from .schemas import Approved, CannotTell, Happened, NotHappened, SchemaError, Verdict, schema
from .secret import Secret
from .transport import ApiError, Unreachable
from .views import (
    Frame,
    InvalidFlow,
    Outcome,
    Page,
    Question,
    Result,
    Run,
    RunCancelled,
    RunEndedBadly,
    RunFailed,
    RunTerminated,
)
from .worker import Worker, WorkerRefused

__all__ = [
    "Activity",
    "ApiError",
    "Approved",
    "AsyncClient",
    "Cancelled",
    "CannotTell",
    "Client",
    "Context",
    "DeclaredError",
    "Done",
    "Failure",
    "Frame",
    "Happened",
    "InvalidFlow",
    "NoLongerWanted",
    "NotHappened",
    "Outcome",
    "Page",
    "Question",
    "Result",
    "Run",
    "RunCancelled",
    "RunEndedBadly",
    "RunFailed",
    "RunTerminated",
    "SchemaError",
    "Secret",
    "Unreachable",
    "Verdict",
    "Worker",
    "WorkerRefused",
    "activity",
    "schema",
]

__version__ = "0.1.0"
