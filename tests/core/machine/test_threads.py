import asyncio
import threading

import pytest

from roost.core.machine.threads import run_in_daemon_thread


async def test_the_loop_goes_on_meanwhile() -> None:
    go_on = threading.Event()
    working = asyncio.create_task(run_in_daemon_thread(lambda: go_on.wait(10)))
    await asyncio.sleep(0)
    assert not working.done()
    go_on.set()
    assert await working is True


async def test_exception_is_raised_where_it_is_awaited() -> None:
    with pytest.raises(ZeroDivisionError):
        await run_in_daemon_thread(lambda: 1 // 0)


async def test_work_that_nobody_awaits_goes_on() -> None:
    go_on, over = threading.Event(), threading.Event()

    def work() -> None:
        go_on.wait(10)
        over.set()

    working = asyncio.create_task(run_in_daemon_thread(work))
    await asyncio.sleep(0)
    working.cancel()
    await asyncio.wait({working})
    go_on.set()
    assert over.wait(10)
