"""Logs of agents: the last lines, and the live stream.

Output is sanitized and free of credentials: Roost's own are recognized by their format, the agent's secrets by their
values.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Mapping
from contextlib import aclosing, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from roost.agents.registry.agent_runtimes import AgentRuntimes, LoadValues
from roost.agents.workspace.logs.model import (
    LINE_LIMIT,
    LogFilter,
    LogLevel,
    LogMessage,
    LogReaderTooSlow,
    TooManyLogReaders,
    parse_line,
    truncate_line,
)
from roost.core import clock, log
from roost.core.log import redact_credentials
from roost.core.periodic import Backoff
from roost.core.problem import Problem
from roost.core.sanitize import sanitize_line
from roost.core.secret_mask import SecretMask
from roost.core.sensitive import Sensitive
from roost.warden_client.client import LogLine
from roost.warden_client.errors import ContainerNotRunning

_log = log.get_logger("logs")
_MAX_MESSAGES, _MAX_CHARS = 1000, 1 << 20
_MIN_RETRY_SECONDS, _MAX_RETRY_SECONDS = 0.1, 2.0  # before the next connection to the warden
_YIELD_INTERVAL = 16  # messages between yields to the event loop, so that a burst does not block other tasks

Lines = Callable[[int], AsyncGenerator[LogLine, None]]
"""Streams the last n lines of a container and then new ones. Raises a Problem without a container, or when it ends."""


class LogFeed:
    """Live log of one agent: one stream from its warden for all readers, and a buffer of numbered messages.

    A reader holds only the number of its next message, so a slow reader costs no memory; if that message has left the
    buffer, the reader gets an error. After a restart of the container or a disconnect by the warden, the feed resumes
    where it stopped, without duplicates. `check_agent` raises the Problem that ends the readers once the agent is
    deleted.
    """

    def __init__(
        self,
        lines: Lines,
        parse: Callable[[LogLine], Awaitable[LogMessage]],
        check_agent: Callable[[], Awaitable[object]],
    ) -> None:
        self._lines, self._parse, self._check_agent = lines, parse, check_agent
        self.readers = 0
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


MAX_READERS = 256
"""Maximum number of concurrent streams of one agent."""
_FILTERED_LINES = 1000  # lines to search for the last 100 that match a filter
_REFRESH_SECONDS = 0.1  # a secret that is attached meanwhile cannot be printed before a process starts
_MAX_VALUES = 1000


class LogService:
    def __init__(self, runtimes: AgentRuntimes, private_values: LoadValues) -> None:
        self._agents = runtimes.agents
        self._runtimes = runtimes
        self._private_values = private_values
        self._feeds: dict[str, LogFeed] = {}

    async def tail(self, agent_id: str, log_filter: LogFilter | None = None) -> str:
        """Return the last 100 matching lines, oldest first; without a container, the reason. Raises AgentNotFound."""
        agent = await self._agents.get_here(agent_id)
        limit = LINE_LIMIT if log_filter is None else _FILTERED_LINES
        try:
            lines = await self._runtimes.get_warden(agent_id).logs(limit=limit)
        except ContainerNotRunning:
            return agent.reason or ""
        mask = _LineMasker(partial(self._private_values, agent_id))
        messages = [await mask(line) for line in lines[-limit:]]
        matching = messages if log_filter is None else [message for message in messages if log_filter.matches(message)]
        return "\n".join(map(_format_line, matching[-LINE_LIMIT:]))

    @contextmanager
    def follow(self, agent_id: str) -> Generator[AsyncIterator[LogMessage]]:
        """Stream the last 100 messages and then new ones, until the agent is deleted. Raises TooManyLogReaders."""
        feed = self._feeds.get(agent_id)
        if feed is None:
            feed = self._feeds[agent_id] = self._open_feed(agent_id)
        if feed.readers >= MAX_READERS:
            raise TooManyLogReaders(retry_after=10)
        feed.readers += 1
        try:
            yield feed.follow()
        finally:
            feed.readers -= 1
            if not feed.readers:
                feed.close()
                del self._feeds[agent_id]

    def _open_feed(self, agent_id: str) -> LogFeed:
        def lines(last: int) -> AsyncGenerator[LogLine]:
            return self._runtimes.get_warden(agent_id).follow(last=last)

        masker = _LineMasker(partial(self._private_values, agent_id))
        return LogFeed(lines, masker, partial(self._agents.get_here, agent_id))


def sanitize_output(text: str) -> str:
    """Truncate and redact a line that an agent wrote, and remove terminal control sequences."""
    return redact_credentials(sanitize_line(truncate_line(text)))


class _LineMasker:
    """Converts lines to masked messages; detached secrets stay masked, because processes may still know them."""

    def __init__(self, private_values: Callable[[], Awaitable[Mapping[str, Sensitive[str]]]]) -> None:
        self._private_values = private_values
        self._known: frozenset[Sensitive[str]] = frozenset()
        self._mask = SecretMask()
        self._until = 0.0

    async def __call__(self, line: LogLine) -> LogMessage:
        if clock.monotonic_seconds() >= self._until:
            self._update(frozenset((await self._private_values()).values()))
        message = parse_line(line)
        return replace(message, source=self._redact(message.source), message=self._redact(message.message))

    def _update(self, values: frozenset[Sensitive[str]]) -> None:
        self._until = clock.monotonic_seconds() + _REFRESH_SECONDS
        if not values <= self._known:
            self._known = values | (self._known if len(self._known) < _MAX_VALUES else frozenset())
            self._mask = SecretMask(self._known)

    def _redact(self, text: str) -> str:
        return redact_credentials(self._mask(text))


def _format_line(message: LogMessage) -> str:
    level = "" if message.level is LogLevel.INFO else f"{message.level} "
    return f"{clock.format_iso(message.timestamp)} [{message.source}] {level}{message.message}"
