import asyncio

from structlog.testing import capture_logs

from roost.core.periodic import PeriodicFlusher

OFTEN, NEVER = 0.005, 1000.0


class CountingFlusher(PeriodicFlusher):
    """Flusher that counts calls of `add`; writes fail while `broken`, and wait for `open`."""

    def __init__(self, interval: float) -> None:
        super().__init__("test", interval)
        self.pending = 0
        self.written: list[int] = []
        self.broken = False
        self.writers = 0
        self.open = asyncio.Event()
        self.open.set()

    async def _write(self) -> None:
        self.writers += 1
        assert self.writers == 1
        try:
            if self.broken:
                raise OSError("no space")
            batch, self.pending = self.pending, 0
            await self.open.wait()
            self.written.append(batch)
        finally:
            self.writers -= 1


async def _until_written(counted: CountingFlusher) -> None:
    async with asyncio.timeout(10):
        while not sum(counted.written):
            await asyncio.sleep(0.002)


async def test_it_writes_by_itself_also_after_a_stop_and_another_start() -> None:
    counted = CountingFlusher(OFTEN)
    for _ in range(2):
        counted.start()
        counted.pending, counted.written = 1, []
        await _until_written(counted)
        await counted.stop()


async def test_a_stop_loses_nothing_and_can_come_twice() -> None:
    counted = CountingFlusher(NEVER)
    counted.start()
    await asyncio.sleep(0)
    counted.pending = 3
    await counted.stop()
    await counted.stop()
    assert sum(counted.written) == 3


async def test_stop_writes_without_a_start() -> None:
    counted = CountingFlusher(NEVER)
    counted.pending = 1
    await counted.stop()
    assert counted.written == [1]


async def test_the_loop_outlives_failures_and_tells_of_them() -> None:
    counted = CountingFlusher(OFTEN)
    counted.broken, counted.pending = True, 2
    counted.start()
    with capture_logs() as logs:
        async with asyncio.timeout(10):
            while not logs:
                await asyncio.sleep(0.002)
    assert logs[0]["task"] == "test"
    counted.broken = False
    await _until_written(counted)
    await counted.stop()
    assert sum(counted.written) == 2


async def test_a_caller_who_gives_up_cuts_nothing_off_and_the_next_takes_its_turn() -> None:
    counted = CountingFlusher(NEVER)
    counted.open.clear()
    counted.pending = 1
    given_up = asyncio.ensure_future(counted.flush())
    while counted.pending:
        await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.gather(given_up, return_exceptions=True)
    counted.pending = 5
    following = asyncio.ensure_future(counted.flush())
    await asyncio.sleep(0)
    assert counted.written == []
    counted.open.set()
    await following
    assert counted.written == [1, 5]
