"""Runs one attempt to its end, whatever the end is.

Leaves what it does to its activity. The end is reported only when the attempt's own work is over, since the runtime may hand out the
next attempt at once; a ``once`` attempt that broke off is reported as stopped, never as failed, because nobody knows whether its
effect happened.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from . import isolated
from .activities import Activity, Done, Failure
from .context import NoLongerWanted
from .desk import Desk, Hand, bad_result
from .forms import dump
from .limits import RESULT_BYTES_MAX
from .schemas import Mismatch, to_json

log = logging.getLogger("outlast")


def run(activity: Activity | None, hand: Hand, desk: Desk) -> None:
    """Runs an attempt of a plain function in this thread and puts its end on the desk."""
    if activity is None:
        failure = Failure("UnknownActivity", f"this worker does not offer {hand.task['activity']}")
        desk.finish(hand.token, _failed(failure))
        return
    if activity.isolated:
        desk.finish(hand.token, end_of(hand, activity, lambda: isolated.run(activity, hand)))
        return

    def call() -> Any:
        return activity.function(**activity.arguments(hand.task.get("input"), hand.context))

    desk.finish(hand.token, end_of(hand, activity, call))


async def run_async(activity: Activity, hand: Hand, desk: Desk) -> None:
    """Runs an attempt of an ``async`` function; it is cancelled when it must end."""
    loop = asyncio.get_running_loop()

    async def work() -> Any:
        try:
            return await activity.function(**activity.arguments(hand.task.get("input"), hand.context))
        except (SystemExit, KeyboardInterrupt) as error:
            # These would end the loop, and with it every other attempt.
            raise isolated.Raised(f"{type(error).__name__}: {error}") from error

    task = loop.create_task(work())

    def cancel() -> None:
        try:
            loop.call_soon_threadsafe(task.cancel)
        except RuntimeError:
            # The loop has ended, and its tasks with it.
            pass

    hand.when_stopped(cancel)
    try:
        await asyncio.wait([task])
    finally:
        task.cancel()
    desk.finish(hand.token, end_of(hand, activity, task.result))


def end_of(hand: Hand, activity: Activity, call: Callable[[], Any]) -> dict[str, Any]:
    """Returns the end of an attempt as ``report`` carries it."""
    try:
        value = call()
    except Failure as failure:
        # It was asked to end, and this is how it did; the flow has gone on.
        return _stopped(hand.why) if hand.why else _failed(failure)
    except NoLongerWanted:
        return _stopped(hand.why or "cancelled")
    except BaseException as error:
        return _broke_off(hand, activity, error)
    # It may have been asked to end and came to its end in spite of that: then this is the truth, and the runtime judges it.
    try:
        return _done(activity.result(value))
    except Exception as error:
        # Whatever a value raises when it is read: an attempt without an end would keep its place for ever.
        return {**bad_result(str(error) or type(error).__name__), **_took(value)}


def _broke_off(hand: Hand, activity: Activity, error: BaseException) -> dict[str, Any]:
    if hand.why:
        return _stopped(hand.why)
    broken = (type(error), error, error.__traceback__)
    if hand.task.get("effect") == "once":
        log.error("%s broke off; its effect is in doubt", activity.name, exc_info=broken)
        return _stopped("broken_off")
    log.warning("%s broke off", activity.name, exc_info=broken)
    text = str(error) if isinstance(error, isolated.Raised) else f"{type(error).__name__}: {error}"
    return _failed(Failure("Crashed", text[:2000]))


def _done(done: Done) -> dict[str, Any]:
    size = len(dump(done.value))
    if size > RESULT_BYTES_MAX:
        raise Mismatch(f"the result has {size} bytes; {RESULT_BYTES_MAX} are allowed")
    return {"kind": "done", "value": done.value, **_spent(done.cost, done.usage)}


def _spent(cost: Any, usage: Any) -> dict[str, Any]:
    """Returns what an attempt took as a report carries it."""
    spent: dict[str, Any] = {}
    if cost is not None:
        spent["cost"] = format(cost, "f")
    if usage is not None:
        spent["usage"] = to_json(usage, "usage")
    dump(spent)
    return spent


def _took(value: Any) -> dict[str, Any]:
    """Returns what an attempt took whose result is of no use; nothing if that is odd, too."""
    try:
        return _spent(value.cost, value.usage) if isinstance(value, Done) else {}
    except Exception:
        return {}


def _failed(failure: Failure) -> dict[str, Any]:
    try:
        end = {"kind": "failed", "error": failure.to_json(), **_spent(failure.cost, failure.usage)}
        dump(end)
    except Exception as odd:
        return bad_result(f"{failure.kind} cannot be written as JSON: {odd}")
    return end


def _stopped(why: str) -> dict[str, Any]:
    return {"kind": "stopped", "why": why}
