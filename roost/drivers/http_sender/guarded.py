"""Sender over a guarded transport, which refuses private addresses. Redirects are not followed."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

import httpx2

from roost.core.machine.network_advice import describe_network_error
from roost.core.problem import Problem
from roost.drivers.http_sender.contract import TIMEOUT, URL_LIMIT, DeliveryFailed, HttpSender, UrlRefused

_DRAIN_BYTES, _DRAIN_SECONDS = 16 * 1024, 1.0
"""Part of a response body that is read before closing: some servers log an error when a client closes early."""

CheckUrl = Callable[[str], None]
"""Raises a Problem for a URL that is not allowed."""
TenantTransport = Callable[[str], httpx2.AsyncBaseTransport]
"""Makes the transport for messages of a tenant; its requests may raise a Problem."""


class GuardedHttpSender(HttpSender):
    def __init__(self, make_transport: TenantTransport, check_url: CheckUrl, *, timeout: float = TIMEOUT) -> None:
        self._make_transport = make_transport
        self._check_url = check_url
        self._timeout = timeout

    def check(self, url: str) -> None:
        if len(url) > URL_LIMIT or not url.isascii() or not url.isprintable() or " " in url or "#" in url:
            raise UrlRefused(f"url must be an address of at most {URL_LIMIT} ASCII characters, without a fragment")
        try:
            self._check_url(url)
        except httpx2.InvalidURL:
            raise UrlRefused from None
        except Problem as problem:
            raise UrlRefused(f"url: {problem.message}") from None

    async def deliver(self, tenant_id: str, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        try:
            self.check(url)  # the operator may have changed the policy since the URL was stored
            async with (
                asyncio.timeout(self._timeout),
                self._client(tenant_id) as client,
                client.stream("POST", url, content=body, headers=dict(headers)) as response,
            ):
                await _drain(response)
                return response.status_code
        except TimeoutError:
            raise DeliveryFailed(f"The receiver did not answer within {self._timeout:g} s") from None
        except httpx2.HTTPError as error:
            raise DeliveryFailed(f"The receiver did not answer: {describe_network_error(error)}") from None
        except Problem as problem:
            raise DeliveryFailed(problem.message) from None

    def _client(self, tenant_id: str) -> httpx2.AsyncClient:
        timeout = httpx2.Timeout(self._timeout)
        return httpx2.AsyncClient(
            headers={"User-Agent": "roost"}, timeout=timeout, transport=self._make_transport(tenant_id), trust_env=False
        )


async def _drain(response: httpx2.Response) -> None:
    """Read and discard a part of the body; the status is known, so nothing here is an error."""
    seen = 0
    with suppress(TimeoutError, httpx2.HTTPError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for piece in response.aiter_raw():
                seen += len(piece)
                if seen >= _DRAIN_BYTES:
                    return
