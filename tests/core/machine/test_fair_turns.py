"""The work of one owner delays neither another owner nor the event loop."""

import asyncio
import threading

from roost.core.machine.threads import FairThreads

COUNT = 2


async def test_work_of_one_owner_takes_turns_and_another_owner_does_not_wait() -> None:
    threads, go, running = FairThreads(COUNT, "test"), threading.Event(), list[int]()

    def wait() -> int:
        running.append(1)
        assert go.wait(20)
        return running.pop()

    waiting = [asyncio.create_task(threads.run("a", wait)) for _ in range(2 * COUNT)]
    assert await asyncio.wait_for(threads.run("b", lambda: len(running)), 20) == 1
    waiting[0].cancel()  # its thread goes on, so its owner still waits
    assert await asyncio.wait_for(threads.run("b", lambda: len(running)), 20) == 1
    go.set()
    done = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(done[0], asyncio.CancelledError)
    assert done[1:] == [1] * (2 * COUNT - 1)
    threads.close()


async def test_failed_work_gives_its_turn_back() -> None:
    threads = FairThreads(COUNT, "test")
    failed = await asyncio.gather(threads.run("a", lambda: 1 // 0), return_exceptions=True)
    assert isinstance(failed[0], ZeroDivisionError)
    assert await asyncio.wait_for(threads.run("a", lambda: 2), 20) == 2
    threads.close()
