"""The agent record and its states (docs/guides/agents.md draws them)."""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from roost.agents.registry.errors import InvalidAgentName

NAME_LIMIT = 100
DESCRIPTION_LIMIT = 10_000
VIBE_LIMIT = 200
EMOJI_LIMIT = 32
MODEL_LIMIT = 200
REASON_LIMIT = 4_000
SERVER_REMOVED = "The agent's server was removed"

_BANNED_CHARACTERS = frozenset("<>\\`")
_BANNED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


class AgentState(StrEnum):
    """Last known state of the agent's gateway."""

    STARTING = "starting"
    RUNNING = "running"
    NOT_RUNNING = "not_running"
    FAILED = "failed"


TRANSITIONS: Mapping[AgentState, frozenset[AgentState]] = {
    # created, restarted or found without its container
    AgentState.STARTING: frozenset({AgentState.RUNNING, AgentState.FAILED, AgentState.NOT_RUNNING}),
    # restart requested or container lost; gateway keeps crashing; server stopped
    AgentState.RUNNING: frozenset({AgentState.STARTING, AgentState.FAILED, AgentState.NOT_RUNNING}),
    # the next start of the server, or a requested restart; it runs after all
    AgentState.NOT_RUNNING: frozenset({AgentState.STARTING, AgentState.RUNNING}),
    # restart requested; a crashing gateway recovered; server stopped
    AgentState.FAILED: frozenset({AgentState.STARTING, AgentState.RUNNING, AgentState.NOT_RUNNING}),
}


@dataclass(frozen=True)
class AgentProfile:
    """User-defined properties of an agent; `model` is the preferred default model of its engine."""

    name: str
    description: str | None = None
    vibe: str | None = None
    emoji: str | None = None
    model: str | None = None


@dataclass(frozen=True)
class Agent:
    """An agent; `deleted` marks one whose deletion is in progress.

    reason: why it is `failed`, or what its start waits for. host_id: the server with its container and files, in a
    runtime that all share the one that serves it now; None if it was removed. runtime: what runs its container there;
    None for the server's default.
    """

    id: str
    tenant_id: str
    profile: AgentProfile
    engine: str
    engine_version: str
    state: AgentState
    reason: str | None
    deleted: bool
    host_id: str | None
    created_at: datetime
    updated_at: datetime
    runtime: str | None = None

    def __hash__(self) -> int:
        return hash(self.id)  # not of all fields, because each of a long list is looked up


class AgentPort(NamedTuple):
    """The port of an agent, and the server that has it."""

    host_id: str
    port: int


def validate_agent_name(name: str) -> str:
    """Return the name without surrounding spaces.

    Raises InvalidAgentName if it is empty, longer than 100 characters, or holds control, invisible or markup characters
    (contract: "banned characters are rejected").
    """
    name = name.strip()
    if not name:
        raise InvalidAgentName("Agent name is required")
    if len(name) > NAME_LIMIT:
        raise InvalidAgentName(f"Agent name must be at most {NAME_LIMIT} characters")
    if any(char in _BANNED_CHARACTERS or unicodedata.category(char) in _BANNED_CATEGORIES for char in name):
        raise InvalidAgentName("Agent name contains invalid characters")
    return name
