"""The contract of a courier, who brings messages to addresses that tenants name. The addresses are hostile.

Of what the other side answers only the status counts: nothing of its words is kept or passed on, and where it points
to is not gone to.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from roost.core.problem import Problem, ProblemKind

TIMEOUT = 15.0
"""Seconds that a receiver has to take a message."""
URL_LIMIT = 2048


class UrlRefused(Problem):
    """Nothing is brought to that address; the message says why."""

    kind = ProblemKind.INVALID
    message = "url is not an address for webhooks"


class DeliveryFailed(Problem):
    """There was no answer. The message says why, and never what address a name led to."""

    kind = ProblemKind.UNAVAILABLE
    message = "The receiver could not be reached"


class HttpSender(ABC):
    @abstractmethod
    def check(self, url: str) -> None:
        """All that can be told of an address without asking for its name. Raises UrlRefused."""

    @abstractmethod
    async def deliver(self, tenant_id: str, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        """The status of the answer to a POST, on behalf of a tenant. Raises Undelivered."""
