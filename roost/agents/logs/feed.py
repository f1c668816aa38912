"""The live log of one agent: one reader of its warden for everybody who follows, and the last messages, numbered.

A follower holds nothing but its place in the numbers, so a slow one costs no memory; when what it wants next is gone,
it is told so and has to leave. A box that goes and comes back, or a warden that finds us slow, is joined again where
it was left: nothing twice.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from datetime import UTC, datetime

from roost.agents.logs.errors import LogReaderTooSlow
from roost.agents.logs.model import LINE_LIMIT, LogMessage
from roost.core import log
from roost.core.periodic import Backoff
from roost.core.problem import Problem
from roost.drivers.runtime.warden_client import LogLine

_log = log.get_logger("logs")
_KEPT, _KEPT_CHARS = 1000, 1 << 20
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 2.0  # seconds before the warden is asked again
_TURN = 16  # messages after which others have a turn: a burst holds nobody up

Lines = Callable[[int], AsyncGenerator[LogLine, None]]
"""The last so many lines of a box and then those that come. Raises a Problem when there is no box, or no more of it."""


class LogFeed:
    """gone: returns while the agent is there; the Problem that it raises is what the followers get."""

    def __init__(
        self, lines: Lines, read: Callable[[LogLine], Awaitable[LogMessage]], gone: Callable[[], Awaitable[object]]
    ) -> None:
        self._lines, self._read, self._gone = lines, read, gone
        self._kept: dict[int, LogMessage] = {}
        self._first = self._next = 0
        self._chars = 0
        self._last = datetime.min.replace(tzinfo=UTC)
        self._latest: Counter[LogLine] = Counter()  # the lines of that last moment
        self._news = asyncio.Event()
        self._over: Problem | None = None
        self._task = asyncio.create_task(self._run())

    def close(self) -> None:
        self._task.cancel()

    async def follow(self) -> AsyncIterator[LogMessage]:
        """The last 100 messages and then each as it comes. Raises Lagging, or what ended the feed."""
        place = max(self._first, self._next - LINE_LIMIT)
        while True:
            while place < self._next:
                if place < self._first:
                    raise LogReaderTooSlow
                yield self._kept[place]
                place += 1
            if self._over is not None:
                raise self._over
            await self._news.wait()

    async def _run(self) -> None:
        backoff = Backoff(_FIRST_WAIT, _LONGEST_WAIT, factor=2)
        try:
            while True:
                before = self._next
                with suppress(Problem):  # the box is away, or did not wait for us
                    await self._take(_KEPT if self._next else LINE_LIMIT)
                await self._gone()
                if self._next > before:
                    backoff.reset()
                await backoff.pause()
        except Problem as problem:
            self._over = problem
        except Exception:  # noqa: BLE001 - the edge of the loop: who follows is told
            _log.exception("a log feed ended")
            self._over = Problem()
        self._tell()

    async def _take(self, wanted: int) -> None:
        seen = self._latest.copy()
        async with aclosing(self._lines(wanted)) as lines:
            async for line in lines:
                if wanted > 0 and self._is_known(line, seen):
                    wanted -= 1
                    continue
                wanted = 0
                self._publish(await self._read(line))
                self._note(line)
                if self._next % _TURN == 0:
                    await asyncio.sleep(0)

    def _is_known(self, line: LogLine, seen: Counter[LogLine]) -> bool:
        """Whether it was told before we had to join again. `seen`: those of the last moment that were not met yet."""
        if line.time == self._last and seen[line]:
            seen[line] -= 1
            return True
        return line.time < self._last

    def _note(self, line: LogLine) -> None:
        if line.time != self._last or len(self._latest) > _KEPT:
            self._last = line.time
            self._latest.clear()
        self._latest[line] += 1

    def _publish(self, message: LogMessage) -> None:
        self._kept[self._next] = message
        self._next += 1
        self._chars += len(message.message)
        while self._next - self._first > _KEPT or self._chars > _KEPT_CHARS:
            self._chars -= len(self._kept.pop(self._first).message)
            self._first += 1
        self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news.clear()
