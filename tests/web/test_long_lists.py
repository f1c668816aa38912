"""A long list is encoded beside the event loop, one at a time; a short one at once."""

import asyncio
import json
import threading

from pydantic import BaseModel

from roost.web.responses import render_list


class Page(BaseModel):
    rows: list[int]


async def test_a_short_list_is_encoded_while_long_ones_take_turns() -> None:
    go, threads, most = threading.Event(), list[int](), 0

    def build_long() -> Page:
        nonlocal most
        threads.append(threading.get_ident())
        most = max(most, len(threads))
        assert go.wait(20)
        threads.pop()
        return Page(rows=long)

    long = list(range(1000))
    waiting = [asyncio.create_task(render_list(long, build_long)) for _ in range(3)]
    async with asyncio.timeout(20):
        while not threads:
            await asyncio.sleep(0)
    assert threading.get_ident() not in threads
    short = await render_list([1], lambda: Page(rows=[threading.get_ident()]))
    assert json.loads(bytes(short.body)) == {"rows": [threading.get_ident()]}
    go.set()
    bodies = [json.loads(bytes(one.body)) for one in await asyncio.gather(*waiting)]
    assert bodies == [{"rows": long}] * 3
    assert most == 1


async def test_a_failed_list_lets_the_next_one_go() -> None:
    items = [0] * 1000
    failed = await asyncio.gather(render_list(items, lambda: Page(rows=[1 // 0])), return_exceptions=True)
    assert isinstance(failed[0], ZeroDivisionError)
    assert (await asyncio.wait_for(render_list(items, lambda: Page(rows=items)), 20)).media_type == "application/json"
