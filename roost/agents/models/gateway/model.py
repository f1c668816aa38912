"""Models, usage and limits of the model gateway."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from roost.drivers.model.contract import ModelSettings, ModelUpstream

MAX_BODY_BYTES = 32 * 1024**2
BODY_TIMEOUT_SECONDS = 60.0
MAX_CONCURRENT_REQUESTS = 32
MAX_CONCURRENT_BYTES = 64 * 1024**2
"""Concurrent requests of one agent, and bytes of their bodies."""
USAGE_DAYS = 31
MAX_OFFERED_MODELS = 1000
"""Maximum number of models in an engine's configuration."""
NO_MODEL = "none"
"""Placeholder where no upstream can list its models; a request for it gets the reason."""


@dataclass(frozen=True)
class ModelTimeouts:
    """Maximum seconds for an answer in one piece, and before each chunk of a streamed one."""

    answer: float = 600.0
    idle: float = 120.0


@dataclass(frozen=True)
class ModelInfo:
    """A model: the id that clients use, and the name of its upstream."""

    id: str
    upstream: str


@dataclass(frozen=True)
class ModelOffer:
    """Offered models, the default first; `problems` says why upstreams did not list theirs."""

    models: Sequence[ModelInfo]
    problems: Sequence[str] = ()

    @property
    def complete(self) -> bool:
        """Return whether every upstream listed its models."""
        return not self.problems

    @property
    def ids(self) -> Sequence[str]:
        """Ids for an engine's configuration: at least one, at most `MAX_OFFERED_MODELS`."""
        return [model.id for model in self.models[:MAX_OFFERED_MODELS]] or [NO_MODEL]


@dataclass(frozen=True)
class AgentProviders:
    """Access to agents' own model providers.

    settings: returns an agent's current providers, the default first.
    connect: creates an upstream for one of them on the agent's behalf, without sending anything.
    """

    settings: Callable[[str], Awaitable[Sequence[ModelSettings]]]
    connect: Callable[[str, ModelSettings], ModelUpstream]


@dataclass(frozen=True)
class ModelUsage:
    """Usage of one model (`upstream/model`) by one agent on one day (UTC); without `agent_id`, by the tenant itself."""

    tenant_id: str
    agent_id: str
    model: str
    day: str
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: "ModelUsage") -> "ModelUsage":
        """Add usage of the same agent, model and day."""
        return ModelUsage(
            *self.key,
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.tenant_id, self.agent_id, self.model, self.day


@dataclass(frozen=True)
class UsageCount:
    """Requests to models, and their tokens."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: "UsageCount") -> "UsageCount":
        return UsageCount(
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )


@dataclass(frozen=True)
class UsageSummary:
    """Usage of a period by day (`2026-01-31`), by model, and by agent; the tenant itself is the agent without id."""

    days: Mapping[str, UsageCount]
    models: Mapping[str, UsageCount]
    agents: Mapping[str, UsageCount]
