"""The client for ``asyncio``: the calls of ``client`` in threads."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from itertools import islice
from typing import Any, Concatenate, ParamSpec, TypeVar

from .client import Client
from .limits import CLIENT_PATIENCE_S, CLIENT_S
from .views import Frame
from .watch import Watch

__all__ = ["AsyncClient"]

T = TypeVar("T")
P = ParamSpec("P")


def _threaded(call: Callable[Concatenate[Client, P], T]) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]]:
    async def threaded(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(call, self._client, *args, **kwargs)

    threaded.__doc__ = call.__doc__
    threaded.__name__ = call.__name__
    return threaded


def _stepped(call: Callable[Concatenate[Client, P], Iterator[T]]) -> Callable[Concatenate[AsyncClient, P], AsyncIterator[T]]:
    async def stepped(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        items = call(self._client, *args, **kwargs)
        while got := await asyncio.to_thread(lambda: list(islice(items, 1))):
            yield got[0]

    stepped.__doc__ = call.__doc__
    stepped.__name__ = call.__name__
    return stepped


class AsyncClient:
    """``Client`` for ``asyncio``: the same calls, each in a thread (``asyncio.to_thread``), so at most as many at once as the
    loop's default executor has threads."""

    def __init__(
        self,
        address: str | None = None,
        token: str | None = None,
        *,
        cafile: str | None = None,
        timeout: float = CLIENT_S,
        patience: float = CLIENT_PATIENCE_S,
    ) -> None:
        self._client = Client(address, token, cafile=cafile, timeout=timeout, patience=patience)

    deploy = _threaded(Client.deploy)
    flows = _threaded(Client.flows)
    start = _threaded(Client.start)
    show = _threaded(Client.show)
    list_runs = _threaded(Client.list_runs)
    runs = _stepped(Client.runs)
    result = _threaded(Client.result)
    wait = _threaded(Client.wait)
    run = _threaded(Client.run)
    send = _threaded(Client.send)
    withdraw = _threaded(Client.withdraw)
    answer = _threaded(Client.answer)
    cancel = _threaded(Client.cancel)
    terminate = _threaded(Client.terminate)
    delete = _threaded(Client.delete)
    settle = _threaded(Client.settle)
    release = _threaded(Client.release)
    fork = _threaded(Client.fork)
    tree = _threaded(Client.tree)
    way = _threaded(Client.way)
    events = _threaded(Client.events)
    history = _stepped(Client.history)
    schedules = _threaded(Client.schedules)
    schedule = _threaded(Client.schedule)
    put_schedule = _threaded(Client.put_schedule)
    remove_schedule = _threaded(Client.remove_schedule)
    pause_schedule = _threaded(Client.pause_schedule)
    resume_schedule = _threaded(Client.resume_schedule)
    run_schedule_now = _threaded(Client.run_schedule_now)
    status = _threaded(Client.status)
    ready = _threaded(Client.ready)

    async def watch(self, run: str, last: str | None = None, *, partials: bool = True) -> AsyncIterator[Frame]:
        """As ``Client.watch``; a thread of its own reads the stream, and ends with the iteration."""
        loop = asyncio.get_running_loop()
        frames: asyncio.Queue[Frame | BaseException | None] = asyncio.Queue()
        room = threading.Semaphore(64)
        watch = Watch(self._client, run, last, partials)

        def put(what: Frame | BaseException | None) -> None:
            try:
                loop.call_soon_threadsafe(frames.put_nowait, what)
            except RuntimeError:
                # The loop has ended, and nobody reads any more.
                watch.close()

        def read() -> None:
            try:
                for frame in watch:
                    room.acquire()
                    put(frame)
                put(None)
            except BaseException as error:
                put(error)

        threading.Thread(target=read, name=f"outlast watch {run}", daemon=True).start()
        try:
            while (got := await frames.get()) is not None:
                if isinstance(got, BaseException):
                    raise got
                room.release()
                yield got
        finally:
            watch.close()
            room.release()
