"""Blocking work beside the event loop, in threads of which a process that ends does not wait for."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def run_in_daemon_thread(work: Callable[[], T]) -> T:
    """The result of `work`, which may take minutes. One that is not awaited any more goes on by itself.

    `asyncio.to_thread` has few threads for all, and the end of the process waits for each of them.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # pyright: ignore[reportArgumentType] - None only where T is

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except Exception as raised:  # noqa: BLE001 - raised again where it is awaited
            error = raised
        with suppress(RuntimeError):  # the loop is closed: nobody awaits it
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, name="aside", daemon=True).start()
    return await done
