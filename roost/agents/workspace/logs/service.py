"""Logs of agents: the last lines, and the live stream.

Output is sanitized and free of credentials: Roost's own are recognized by their format, the agent's secrets by their
values.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.workspace.logs.feed import LogFeed
from roost.agents.workspace.logs.model import (
    LINE_LIMIT,
    LogFilter,
    LogLevel,
    LogMessage,
    TooManyLogReaders,
    parse_line,
    truncate_line,
)
from roost.core import clock
from roost.core.log import redact_credentials
from roost.core.sanitize import sanitize_line
from roost.core.secret_mask import SecretMask
from roost.core.sensitive import Sensitive
from roost.warden_client.client import LogLine
from roost.warden_client.errors import ContainerNotRunning

MAX_READERS = 256
"""Maximum number of concurrent streams of one agent."""
_FILTERED_LINES = 1000  # lines to search for the last 100 that match a filter
_REFRESH_SECONDS = 0.1  # a secret that is attached meanwhile cannot be printed before a process starts
_MAX_VALUES = 1000

PrivateValues = Callable[[str], Awaitable[Mapping[str, Sensitive[str]]]]
"""Returns the values that an agent's logs mask, by what they are."""


class LogService:
    def __init__(self, runtimes: AgentRuntimes, private_values: PrivateValues) -> None:
        self._agents = runtimes.agents
        self._runtimes = runtimes
        self._private_values = private_values
        self._shared: dict[str, _SharedFeed] = {}

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
        shared = self._shared.get(agent_id)
        if shared is None:
            shared = self._shared[agent_id] = _SharedFeed(self._feed(agent_id))
        if shared.readers >= MAX_READERS:
            raise TooManyLogReaders(retry_after=10)
        shared.readers += 1
        try:
            yield shared.feed.follow()
        finally:
            shared.readers -= 1
            if not shared.readers:
                shared.feed.close()
                del self._shared[agent_id]

    def _feed(self, agent_id: str) -> LogFeed:
        def lines(last: int) -> AsyncGenerator[LogLine]:
            return self._runtimes.get_warden(agent_id).follow(last=last)

        return LogFeed(
            lines, _LineMasker(partial(self._private_values, agent_id)), partial(self._agents.get_here, agent_id)
        )


def sanitize_output(text: str) -> str:
    """Truncate and redact a line that an agent wrote, and remove terminal control sequences."""
    return redact_credentials(sanitize_line(truncate_line(text)))


@dataclass
class _SharedFeed:
    feed: LogFeed
    readers: int = 0


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
