"""Events, their types and errors, and what a client may see of them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from roost.core.actor import Actor
from roost.core.problem import InvalidInput, TooManyRequests
from roost.identity.caller import Caller

RETENTION = timedelta(hours=1)
MAX_EVENTS = 10_000
"""Newest events of a tenant that are kept; older ones are deleted even before `RETENTION`."""
MAX_STREAMS = 64
"""Maximum number of concurrent streams of one credential."""
MAX_DATA_CHARS = 300
"""Maximum length of a text in an event's data."""
OLDEST = -1
"""Cursor of a stream that begins with the oldest event that is kept."""
_OLDEST_WORD = "oldest"
_MAX_CURSOR_DIGITS = 18
_FILES_READ, _AGENTS_READ = "org:files:read", "org:agents:read"


class TooManyEventStreams(TooManyRequests):
    message = "Too many event streams of this credential are open"


class InvalidCursor(InvalidInput):
    """The cursor is no id of an event."""


class UnknownEventType(InvalidInput):
    """The name is neither a type nor a kind of events."""


class EventType(StrEnum):
    AGENT_CREATED = "agent.created"
    AGENT_CHANGED = "agent.changed"
    AGENT_DELETED = "agent.deleted"
    OPERATION_CHANGED = "operation.changed"
    TASK_CHANGED = "task.changed"
    TASK_RUN = "task.run"
    DEVICE_CHANGED = "device.changed"
    CHANNEL_CHANGED = "channel.changed"
    CONVERSATION_CHANGED = "conversation.changed"
    FILE_ADDED = "file.added"
    FILE_UPDATED = "file.updated"
    FILE_DELETED = "file.deleted"
    SNAPSHOT_CREATED = "snapshot.created"
    SNAPSHOT_FAILED = "snapshot.failed"
    PUSH_FAILED = "push.failed"
    SKILL_CHANGED = "skill.changed"
    SECRET_CHANGED = "secret.changed"  # noqa: S105 - the name of a type
    DOMAIN_CHANGED = "domain.changed"
    HEARTBEAT = "heartbeat"
    RESET = "reset"


STORED_TYPES = frozenset(EventType) - {EventType.HEARTBEAT, EventType.RESET}
"""Types of changes; the others are messages of a stream about itself."""


@dataclass(frozen=True)
class Event:
    """One change of a tenant. Its number counts the tenant's events without gaps, in the order of their commits.

    actor: who made the change; None for one from before actors were recorded.
    """

    tenant_id: str
    number: int
    type: EventType
    at: datetime
    subject_kind: str = ""
    subject_id: str = ""
    agent_id: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    actor: Actor | None = None


@dataclass(frozen=True)
class EventBounds:
    """Numbers of a tenant's last event, and of the first one that is kept."""

    first: int = 1
    last: int = 0

    def allow(self, after: int) -> bool:
        """Return whether all events after this number are kept."""
        return self.first - 1 <= after <= self.last


@dataclass(frozen=True)
class EventFilter:
    """Filter of a stream: event types, an agent, and whether it tells of actors more than their kind."""

    types: frozenset[EventType] = STORED_TYPES
    agent_id: str | None = None
    shows_actors: bool = True

    def matches(self, event: Event) -> bool:
        return event.type in self.types and self.agent_id in {None, event.agent_id}

    def redact(self, event: Event) -> Event:
        """Return an event as the stream may show it."""
        if self.shows_actors or event.actor is None:
            return event
        return replace(event, actor=Actor(event.actor.kind))


def parse_types(text: str | None) -> frozenset[EventType]:
    """Parse a comma-separated list of types (`agent.created`) and kinds (`agent`). Raises UnknownEventType."""
    if text is None:
        return STORED_TYPES
    found = set[EventType]()
    for name in (name.strip() for name in text.split(",")):
        types = {one for one in STORED_TYPES if name in {one.value, one.value.partition(".")[0]}}
        if not types:
            raise UnknownEventType(f"types must name types or kinds of events, got {name[:50]!r}")
        found |= types
    return frozenset(found)


def parse_cursor(text: str | None) -> int | None:
    """Parse the id of an event, or `oldest`. Raises InvalidCursor."""
    if not text:
        return None
    if text == _OLDEST_WORD:
        return OLDEST
    if not (text.isascii() and text.isdecimal() and len(text) <= _MAX_CURSOR_DIGITS):
        raise InvalidCursor(f"after must be the id of an event or oldest, got {text[:50]!r}")
    return int(text)


def list_visible_types(caller: Caller) -> frozenset[EventType]:
    """Return the types that the caller's scopes let it see; reading files needs a scope of its own."""
    sees_files = caller.allows(_FILES_READ) or caller.allows(_FILES_READ.replace(":read", ":write"))
    visible = {one for one in STORED_TYPES if sees_files if one.startswith("file.")}
    if caller.allows(_AGENTS_READ):
        visible |= {one for one in STORED_TYPES if not one.startswith("file.")}
    return frozenset(visible)


def shorten_data(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an event's data without values of None, its texts cut to `MAX_DATA_CHARS`."""
    given = {key: value for key, value in data.items() if value is not None}
    return {key: value[:MAX_DATA_CHARS] if isinstance(value, str) else value for key, value in given.items()}
