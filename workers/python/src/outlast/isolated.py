"""Attempts in processes of their own: the one way to stop a plain function that does not listen.

The process leads a group, which is killed whole when the attempt must end, or when the worker is gone. Leaves judging the end to
``attempt``. What the function says goes through a pipe, so its context means the same on both sides.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from . import secret
from .context import Cancelled, Context, NoLongerWanted
from .limits import STOP_GRACE_S

if TYPE_CHECKING:
    from .activities import Activity
    from .desk import Hand


class Raised(Exception):
    """What the function raised, as text: exceptions need not survive a pipe."""


def run(activity: Activity, hand: Hand) -> Any:
    """Runs an attempt in a new process; returns or raises what it did."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=_child, args=(theirs, activity.function, hand.task, secret.declared()), name=f"outlast {activity.name}")
    process.start()
    theirs.close()
    assert process.pid is not None
    leash = _Leash(process.pid)
    hand.when_stopped(leash.stop)
    try:
        return _listen(ours, hand)
    except EOFError:
        process.join()
        raise Raised(f"the attempt's process ended with {process.exitcode}") from None
    finally:
        # Whatever the function left running goes with it.
        leash.end()
        process.join()
        ours.close()


class _Leash:
    """Stops a process, once it is asked to; after its end nothing is done, since its number may be another's by then."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._lock = threading.Lock()
        self._over = False

    def stop(self) -> None:
        """Asks the process to end, and kills its group if it has not after a while."""
        with self._lock:
            if self._over:
                return
            _signal(self._pid, signal.SIGTERM)
        timer = threading.Timer(STOP_GRACE_S, self._kill)
        timer.daemon = True
        timer.start()

    def end(self) -> None:
        """Kills what is left of the group; there is nothing to stop any more."""
        self._kill()
        with self._lock:
            self._over = True

    def _kill(self) -> None:
        with self._lock:
            if not self._over:
                _kill_group(self._pid)


def _listen(pipe: Connection, hand: Hand) -> Any:
    from .activities import Failure

    while True:
        word, *rest = pipe.recv()
        if word == "done":
            return rest[0]
        if word == "failed":
            kind, text, options, fields = rest
            failure = Failure(kind, text, **options)
            failure.fields = fields
            raise failure
        if word == "unwanted":
            raise NoLongerWanted(rest[0])
        if word == "raised":
            raise Raised(rest[0])
        if word == "handle":
            try:
                hand.save_handle(rest[0])
                pipe.send("accepted")
            except NoLongerWanted:
                pipe.send("superseded")
            except Cancelled:
                pipe.send("cancelled")
        elif word == "progress":
            hand.progress(rest[0])
        elif word == "percent":
            hand.percent(rest[0])
        elif word == "heartbeat":
            hand.heartbeat()


class _Pipe:
    """The voice of an attempt in its own process."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._sending = threading.Lock()
        self._asking = threading.Lock()
        self._answer = threading.Semaphore(0)
        self._answers: list[str] = []

    def send(self, *word: Any) -> None:
        with self._sending:
            self._pipe.send(word)

    def listen(self) -> None:
        """Hears answers, and the end of the worker: then nobody would stop this attempt any more, so it ends here."""
        try:
            while True:
                self._answers.append(self._pipe.recv())
                self._answer.release()
        except (EOFError, OSError):
            os.killpg(0, signal.SIGKILL)

    def progress(self, text: str) -> None:
        self.send("progress", text)

    def percent(self, percent: float) -> None:
        self.send("percent", percent)

    def heartbeat(self) -> None:
        self.send("heartbeat")

    def save_handle(self, handle: Any) -> None:
        with self._asking:
            self.send("handle", handle)
            self._answer.acquire()
            answer = self._answers.pop(0)
        if answer == "cancelled":
            raise Cancelled
        if answer != "accepted":
            raise NoLongerWanted("the runtime no longer wants this attempt")


def _child(pipe: Connection, function: Any, task: dict[str, Any], secrets: list[str]) -> None:
    from . import activities
    from .desk import BAD_RESULT
    from .schemas import Mismatch, to_json

    os.setpgid(0, 0)
    secret.declare(secrets)
    cancelled = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: cancelled.set())
    # The keyboard speaks to the worker, which decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    voice = _Pipe(pipe)
    threading.Thread(target=voice.listen, daemon=True).start()
    made = activities.of(function)
    context = Context(task, voice, cancelled, lambda: "cancelled" if cancelled.is_set() else None)
    try:
        value = made.function(**made.arguments(task.get("input"), context))
        # Encoded here, where the types are: what goes through the pipe is plain.
        voice.send("done", made.result(value))
    except activities.Failure as failure:
        # Plain, too, for the same reason.
        usage = None if failure.usage is None else to_json(failure.usage, "usage")
        options = {"retryable": failure.retryable, "retry_after": failure.retry_after, "cost": failure.cost, "usage": usage}
        voice.send("failed", failure.kind, failure.text, options, failure.to_json())
    except Mismatch as error:
        voice.send("failed", BAD_RESULT, str(error), {}, {})
    except NoLongerWanted as error:
        voice.send("unwanted", str(error))
    except BaseException as error:
        voice.send("raised", f"{type(error).__name__}: {error}")


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        # It has ended by itself.
        pass


def _kill_group(pid: int) -> None:
    for kill in (os.killpg, os.kill):
        try:
            kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            # It is gone, or has not made its group yet; then the second call is the one that counts.
            pass
