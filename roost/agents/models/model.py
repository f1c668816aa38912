"""What the model gateway offers and counts, and its limits."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from roost.drivers.model.contract import ModelSettings, ModelUpstream

LARGEST_BODY = 32 * 1024**2
BODY_DEADLINE = 60.0
"""Seconds for a body to arrive in."""
AT_ONCE = 32
BYTES_AT_ONCE = 64 * 1024**2
"""Requests that one agent may have running, and bytes of their bodies."""
IDLE = 120.0
"""Seconds between two pieces of a streamed answer."""
WHOLE = 600.0
"""Seconds for an answer in one piece."""
USAGE_DAYS = 31
MOST_OFFERED = 1000
"""Models that an agent's engine is told of."""
NONE_KNOWN = "none"
"""What stands for a model where no upstream can say what it serves; a request for it is told why."""


@dataclass(frozen=True)
class ModelInfo:
    """A model by the id that clients use; `upstream` is the name of where it comes from."""

    id: str
    upstream: str


@dataclass(frozen=True)
class ModelOffer:
    """The models, the default first. Not `complete` where an upstream could not be asked, so that some are missing."""

    models: Sequence[ModelInfo]
    complete: bool

    @property
    def ids(self) -> Sequence[str]:
        """For an engine: at least one, and not too many."""
        return [model.id for model in self.models[:MOST_OFFERED]] or [NONE_KNOWN]


@dataclass(frozen=True)
class AgentProviders:
    """The way to what agents bring themselves.

    settings: the model providers of an agent, the default first, as they are now.
    connect: an upstream for one of them, on the agent's behalf; nothing is sent yet.
    """

    settings: Callable[[str], Awaitable[Sequence[ModelSettings]]]
    connect: Callable[[str, ModelSettings], ModelUpstream]


@dataclass(frozen=True)
class ModelUsage:
    """What one agent used of one model (`upstream/model`) on one day (UTC).

    `agent_id` is empty for what the tenant used itself.
    """

    tenant_id: str
    agent_id: str
    model: str
    day: str
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: "ModelUsage") -> "ModelUsage":
        """Of the same agent, model and day."""
        return ModelUsage(
            *self.key,
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.tenant_id, self.agent_id, self.model, self.day
