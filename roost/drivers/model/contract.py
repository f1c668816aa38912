"""The contract of an upstream, which answers chat requests in OpenAI's format whatever its own protocol is.

A `ForwardingUpstream` speaks that API itself, so that requests to its other endpoints pass through it.

An upstream knows nothing of tenants, agents or token counts. It holds the API key, if there is one, and never shows it
in an answer, an error or a log.

UpstreamProblem
 +- UpstreamRefused      the upstream rejected this request (400, 404, 422 ...)
 |   +- UpstreamMissing    it has no such endpoint or model (404)
 |   +- UpstreamTooLarge   because of its size (413)
 |   +- UpstreamLimited    because of a rate limit (429)
 +- UpstreamUnavailable  no answer, an incomplete or a malformed one
     +- UpstreamDenied     the key or account was rejected (401, 402, 403); the operator has to act
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Literal

from roost.core.problem import Problem, ProblemKind
from roost.core.sensitive import Sensitive
from roost.drivers.model.chat import ChatRequest
from roost.drivers.model.json_access import Json


@dataclass(frozen=True)
class ModelSettings:
    """One configured upstream.

    name: the first part of its model ids (`name/model`).
    url: with the API version for `openai` (`https://host/v1`), without it for `anthropic` (`https://host`).
    models: the ids that it serves; if empty, the upstream is asked for them.
    prefer: patterns (`gpt-*`) of the ids to list first, in this order, if the upstream is asked.
    bearer: send the key in `Authorization: Bearer`, even if the API has its own header for keys.
    is_local: a server on this machine that the operator opened, so that rules for agents' connections do not apply.
    """

    name: str
    api: Literal["openai", "anthropic"]
    url: str
    key: Sensitive[str] | None = None
    models: tuple[str, ...] = ()
    prefer: tuple[str, ...] = ()
    bearer: bool = False
    is_local: bool = False


class UpstreamProblem(Problem):
    """A failed request; `extra["code"]` is the upstream's error code (`context_length_exceeded`), which clients use."""


class UpstreamRefused(UpstreamProblem):
    kind = ProblemKind.INVALID
    message = "The model provider refused the request"


class UpstreamMissing(UpstreamRefused):
    kind = ProblemKind.MISSING


class UpstreamTooLarge(UpstreamRefused):
    kind = ProblemKind.TOO_LARGE


class UpstreamLimited(UpstreamRefused):
    kind = ProblemKind.LIMITED
    message = "The model provider limits the rate of requests"


class UpstreamUnavailable(UpstreamProblem):
    kind = ProblemKind.UNAVAILABLE
    message = "The model provider is not available"


class UpstreamDenied(UpstreamUnavailable):
    message = "The model provider does not accept the configured key or account"


class ModelUpstream(ABC):
    """One source of models; `name` is the first part of its model ids."""

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    async def list_models(self) -> Sequence[str]:
        """Return the ids of its models, preferred ones first. Raises UpstreamUnavailable."""

    @abstractmethod
    async def complete(self, request: ChatRequest) -> Json:
        """Return a `chat.completion` object, with `usage` if the upstream counts tokens.

        `request.model` is an id of `list_models()`. It waits without a limit; cancelling ends the upstream request.
        Raises UpstreamProblem.
        """

    @abstractmethod
    def stream(self, request: ChatRequest) -> AsyncGenerator[Json, None]:
        """Yield `chat.completion.chunk` objects; the last one has `usage` if the request asks for it.

        The request is sent when the first chunk is awaited, which also raises its errors. A generator that ends without
        raising has yielded the whole answer. `aclose` also ends the upstream request.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close all connections. Idempotent."""


class ForwardingUpstream(ModelUpstream):
    """A source of models that speaks OpenAI's API itself. Paths are relative to its base URL (`/embeddings`)."""

    @abstractmethod
    async def forward(self, path: str, body: Json) -> Json:
        """Return the answer to a request, unchanged but for keys in an error. Raises UpstreamProblem."""

    @abstractmethod
    def forward_stream(self, path: str, body: Json) -> AsyncGenerator[Json, None]:
        """Yield the events of a streamed answer in the form of the Responses API, otherwise as `stream` does."""
