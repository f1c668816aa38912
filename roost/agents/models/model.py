"""What the model gateway offers and counts, and its limits."""

from dataclasses import dataclass

LARGEST_BODY = 32 * 1024**2
MOST_VALUES = 500_000
"""JSON values in a body: a small body of many tiny values would take up hundreds of times its size in memory."""
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


@dataclass(frozen=True)
class ModelInfo:
    """A model by the id that clients use; `upstream` is the name of where it comes from."""

    id: str
    upstream: str


@dataclass(frozen=True)
class Usage:
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

    def __add__(self, other: "Usage") -> "Usage":
        """Of the same agent, model and day."""
        return Usage(
            *self.key,
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
        )

    @property
    def key(self) -> tuple[str, str, str, str]:
        return self.tenant_id, self.agent_id, self.model, self.day
