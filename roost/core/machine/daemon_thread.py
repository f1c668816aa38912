"""Blocking work in daemon threads, which do not delay process exit."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def run_in_daemon_thread(work: Callable[[], T]) -> T:
    """Run `work`, which may take minutes, and return its result; a cancelled call leaves the thread running.

    `asyncio.to_thread` shares few threads, and process exit waits for each of them.
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
        except Exception as raised:  # noqa: BLE001 - raised again in the awaiting task
            error = raised
        with suppress(RuntimeError):  # the loop is closed, so no task awaits the result
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, name="daemon-work", daemon=True).start()
    return await done
