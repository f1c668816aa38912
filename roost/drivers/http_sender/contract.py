"""Contract of a sender of HTTP messages to URLs that tenants name. The URLs are hostile.

Only the status of a response is used: its body is discarded, and redirects are not followed.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from roost.core.problem import InvalidInput, ServiceUnavailable

TIMEOUT = 15.0
"""Seconds for one delivery, from name lookup to response."""
URL_LIMIT = 2048


class UrlRefused(InvalidInput):
    """The URL cannot be a target; the message says why."""

    message = "url is not an address for webhooks"


class DeliveryFailed(ServiceUnavailable):
    """There was no response. The message says why and never contains a resolved address."""

    message = "The receiver could not be reached"


class HttpSender(ABC):
    """Sender of POST requests."""

    @abstractmethod
    def check(self, url: str) -> None:
        """Check a URL without resolving its name. Raises UrlRefused."""

    @abstractmethod
    async def deliver(self, tenant_id: str, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        """Send a POST on behalf of a tenant and return the status of the response. Raises DeliveryFailed."""
