"""The live log of one agent: one stream from its warden for all readers, and a buffer of numbered messages.

A reader holds only the number of its next message, so a slow reader costs no memory; if that message has left the
buffer, the reader gets an error. After a restart of the container or a disconnect by the warden, the feed resumes where
it stopped, without duplicates.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from datetime import UTC, datetime

from roost.agents.workspace.logs.model import LINE_LIMIT, LogMessage, LogReaderTooSlow
from roost.core import log
from roost.core.periodic import Backoff
from roost.core.problem import Problem
from roost.warden_client.client import LogLine

_log = log.get_logger("logs")
_MAX_MESSAGES, _MAX_CHARS = 1000, 1 << 20
_MIN_RETRY_SECONDS, _MAX_RETRY_SECONDS = 0.1, 2.0  # before the next connection to the warden
_YIELD_INTERVAL = 16  # messages between yields to the event loop, so that a burst does not block other tasks

Lines = Callable[[int], AsyncGenerator[LogLine, None]]
"""Streams the last n lines of a container and then new ones. Raises a Problem without a container, or when it ends."""


class LogFeed:
    """Live log of one agent; `check_agent` raises the Problem that ends the readers once the agent is deleted."""

    def __init__(
        self,
        lines: Lines,
        parse: Callable[[LogLine], Awaitable[LogMessage]],
        check_agent: Callable[[], Awaitable[object]],
    ) -> None:
        self._lines, self._parse, self._check_agent = lines, parse, check_agent
        self._messages: dict[int, LogMessage] = {}
        self._first = self._next = 0
        self._chars = 0
        self._last_time = datetime.min.replace(tzinfo=UTC)
        self._last_lines: Counter[LogLine] = Counter()  # the lines with that time
        self._published = asyncio.Event()
        self._error: Problem | None = None
        self._task = asyncio.create_task(self._run())

    def close(self) -> None:
        self._task.cancel()

    async def follow(self) -> AsyncIterator[LogMessage]:
        """Yield the last 100 messages, then new ones. Raises LogReaderTooSlow, or the Problem that ended the feed."""
        number = max(self._first, self._next - LINE_LIMIT)
        while True:
            while number < self._next:
                if number < self._first:
                    raise LogReaderTooSlow
                yield self._messages[number]
                number += 1
            if self._error is not None:
                raise self._error
            await self._published.wait()

    async def _run(self) -> None:
        backoff = Backoff(_MIN_RETRY_SECONDS, _MAX_RETRY_SECONDS, factor=2)
        try:
            while True:
                before = self._next
                with suppress(Problem):  # the container is gone, or the warden disconnected a slow reader
                    await self._read_lines(_MAX_MESSAGES if self._next else LINE_LIMIT)
                await self._check_agent()
                if self._next > before:
                    backoff.reset()
                await backoff.pause()
        except Problem as problem:
            self._error = problem
        except Exception:  # noqa: BLE001 - the edge of the loop: readers get an error
            _log.exception("log_feed.failed")
            self._error = Problem()
        self._notify()

    async def _read_lines(self, replay: int) -> None:
        unmatched = self._last_lines.copy()
        async with aclosing(self._lines(replay)) as lines:
            async for line in lines:
                if replay > 0 and self._is_known(line, unmatched):
                    replay -= 1
                    continue
                replay = 0
                self._publish(await self._parse(line))
                self._remember(line)
                if self._next % _YIELD_INTERVAL == 0:
                    await asyncio.sleep(0)

    def _is_known(self, line: LogLine, unmatched: Counter[LogLine]) -> bool:
        """Return whether the line was published before a reconnect; `unmatched` counts the lines of the last time."""
        if line.time == self._last_time and unmatched[line]:
            unmatched[line] -= 1
            return True
        return line.time < self._last_time

    def _remember(self, line: LogLine) -> None:
        if line.time != self._last_time or len(self._last_lines) > _MAX_MESSAGES:
            self._last_time = line.time
            self._last_lines.clear()
        self._last_lines[line] += 1

    def _publish(self, message: LogMessage) -> None:
        self._messages[self._next] = message
        self._next += 1
        self._chars += len(message.message)
        while self._next - self._first > _MAX_MESSAGES or self._chars > _MAX_CHARS:
            self._chars -= len(self._messages.pop(self._first).message)
            self._first += 1
        self._notify()

    def _notify(self) -> None:
        self._published.set()
        self._published.clear()
