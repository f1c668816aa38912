"""The logs of agents: the last lines, and the live ones for everybody who follows.

Whatever leaves this room is plain, and without credentials: our own are known by their form, the agent's secrets by
their values.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from roost.agents.logs.errors import TooManyLogReaders
from roost.agents.logs.feed import LogFeed
from roost.agents.logs.model import LINE_LIMIT, LogFilter, LogLevel, LogMessage, cut, read
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.repository import AgentRepository
from roost.core import clock
from roost.core.log import redact_credentials
from roost.core.sanitize import sanitize_line
from roost.core.secret_mask import SecretMask
from roost.core.sensitive import Sensitive
from roost.drivers.runtime.contract import ContainerNotRunning
from roost.drivers.runtime.warden_client import LogLine

READERS = 256
"""Streams of one agent at a time."""
_LOOKED_THROUGH = 1000  # lines, for the last 100 of one kind
_FRESH = 0.1  # seconds; a secret that is attached meanwhile cannot be printed sooner than a process starts
_VALUES = 1000

Private = Callable[[str], Awaitable[Iterable[Sensitive[str]]]]
"""An agent's id to the values that nobody may read in its logs."""


class LogService:
    def __init__(self, roster: AgentRepository, reach: AgentRuntimes, private: Private) -> None:
        self._roster = roster
        self._reach = reach
        self._private = private
        self._shared: dict[str, _SharedFeed] = {}

    async def tail(self, agent_id: str, wanted: LogFilter | None = None) -> str:
        """The last 100 lines (of those that are wanted), oldest first, as one text; of an agent without a container,
        why it has none.

        Raises AgentGone.
        """
        agent = await self._roster.get(agent_id)
        limit = LINE_LIMIT if wanted is None else _LOOKED_THROUGH
        try:
            lines = await self._reach.get_warden(agent_id).logs(limit=limit)
        except ContainerNotRunning:
            return agent.reason or ""
        shown = _LineMasker(partial(self._private, agent_id))
        messages = [await shown(line) for line in lines[-limit:]]
        told = messages if wanted is None else [message for message in messages if wanted.admits(message)]
        return "\n".join(map(_line, told[-LINE_LIMIT:]))

    @contextmanager
    def follow(self, agent_id: str) -> Generator[AsyncIterator[LogMessage]]:
        """The last 100 messages and then each as it comes, until the agent is gone. Raises TooManyReaders."""
        shared = self._shared.get(agent_id)
        if shared is None:
            shared = self._shared[agent_id] = _SharedFeed(self._feed(agent_id))
        if shared.readers >= READERS:
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
            return self._reach.get_warden(agent_id).follow(last=last)

        return LogFeed(lines, _LineMasker(partial(self._private, agent_id)), partial(self._roster.get, agent_id))


def shown(text: str) -> str:
    """A line that an agent wrote, as people may see it: cut, masked, and without what would steer a terminal."""
    return redact_credentials(sanitize_line(cut(text)))


@dataclass
class _SharedFeed:
    feed: LogFeed
    readers: int = 0


class _LineMasker:
    """Makes messages of lines. What was private once stays so: a process may still know a secret that was detached."""

    def __init__(self, private: Callable[[], Awaitable[Iterable[Sensitive[str]]]]) -> None:
        self._private = private
        self._known: frozenset[Sensitive[str]] = frozenset()
        self._mask = SecretMask()
        self._until = 0.0

    async def __call__(self, line: LogLine) -> LogMessage:
        if clock.monotonic_seconds() >= self._until:
            self._learn(frozenset(await self._private()))
        message = read(line)
        return replace(message, source=self._masked(message.source), message=self._masked(message.message))

    def _learn(self, values: frozenset[Sensitive[str]]) -> None:
        self._until = clock.monotonic_seconds() + _FRESH
        if not values <= self._known:
            self._known = values | (self._known if len(self._known) < _VALUES else frozenset())
            self._mask = SecretMask(self._known)

    def _masked(self, text: str) -> str:
        return redact_credentials(self._mask(text))


def _line(message: LogMessage) -> str:
    level = "" if message.level is LogLevel.INFO else f"{message.level} "
    return f"{clock.format_iso(message.timestamp)} [{message.source}] {level}{message.message}"
