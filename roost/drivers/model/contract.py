"""The contract of an upstream: it answers chat requests in OpenAI's form, whatever it speaks to behind.

An upstream knows nothing of tenants, agents or counting. It holds the key, if there is one, and never shows it: not in
an answer, an error or a log.

UpstreamProblem
 +- UpstreamRefused      the upstream said no to this request (400, 404, 422 ...)
 |   +- UpstreamTooLarge   because of its size (413)
 |   +- UpstreamLimited    because there were too many (429)
 +- UpstreamUnavailable  it did not answer, broke off, or answered nothing that can be understood
     +- UpstreamDenied     it does not accept our key or account (401, 402, 403): for the operator to mend
"""

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from roost.core.problem import Problem, ProblemKind
from roost.core.sensitive import Sensitive
from roost.drivers.model.chat import ChatRequest

Json = dict[str, Any]


@dataclass(frozen=True)
class ModelSettings:
    """One configured upstream.

    name: the first part of its model ids (`name/model`).
    url: for `openai` the address with the version (`https://host/v1`), for `anthropic` without (`https://host`).
    models: the ids that it serves; empty means that it is asked.
    prefer: patterns (`gpt-*`) of the ids to put first when it is asked, in this order.
    bearer: the key is a token, for `Authorization: Bearer` also where the API has a header of its own for keys.
    """

    name: str
    api: Literal["openai", "anthropic"]
    url: str
    key: Sensitive[str] | None = None
    models: tuple[str, ...] = ()
    prefer: tuple[str, ...] = ()
    bearer: bool = False


class UpstreamProblem(Problem):
    """`extra["code"]` is the upstream's own code (`context_length_exceeded` ...), which clients act on."""


class UpstreamRefused(UpstreamProblem):
    kind = ProblemKind.INVALID
    message = "The model provider refused the request"


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
    """One source of models. `name` is how it is called in model ids."""

    def __init__(self, name: str) -> None:
        self.name = name

    @abstractmethod
    async def models(self) -> Sequence[str]:
        """The ids of the models that it serves, the preferred first. Raises UpstreamUnavailable."""

    @abstractmethod
    async def complete(self, request: ChatRequest) -> Json:
        """The whole answer: a `chat.completion` object, with `usage` where the upstream counts.

        `request.model` is an id of `models()`. Cancelling ends the request upstream too. Raises UpstreamProblem.
        """

    @abstractmethod
    def stream(self, request: ChatRequest) -> AsyncGenerator[Json, None]:
        """The answer piece by piece: `chat.completion.chunk` objects; the last carries `usage` when asked for.

        Nothing is sent before the first piece is asked for, and whatever goes wrong until then is raised there. A
        generator that ends without raising has given the whole answer. `aclose` ends the request upstream too.
        """

    @abstractmethod
    async def close(self) -> None:
        """Let go of all connections. Idempotent."""
