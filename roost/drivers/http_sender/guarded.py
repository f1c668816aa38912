"""Messages over HTTP, through the transport that judges where it goes. Redirects are not followed."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

import httpx2

from roost.core.problem import Problem
from roost.drivers.http_sender.contract import TIMEOUT, URL_LIMIT, DeliveryFailed, HttpSender, UrlRefused

_READ = 16 * 1024
_LINGER = 1.0
"""Bytes and seconds of an answer that are taken in before the connection is closed: some servers mind a closed door."""

Judge = Callable[[str], None]
"""Raises a Problem for an address that nothing may be brought to."""
Transport = Callable[[str], httpx2.AsyncBaseTransport]
"""Makes the transport for messages of a tenant. It may refuse by a Problem."""


class GuardedHttpSender(HttpSender):
    def __init__(self, outwards: Transport, judge: Judge, *, timeout: float = TIMEOUT) -> None:
        self._outwards = outwards
        self._judge = judge
        self._timeout = timeout

    def check(self, url: str) -> None:
        if len(url) > URL_LIMIT or not url.isascii() or not url.isprintable() or " " in url or "#" in url:
            raise UrlRefused(f"url must be an address of at most {URL_LIMIT} ASCII characters, without a fragment")
        try:
            self._judge(url)
        except httpx2.InvalidURL:
            raise UrlRefused from None
        except Problem as problem:
            raise UrlRefused(f"url: {problem.message}") from None

    async def deliver(self, tenant_id: str, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        try:
            self.check(url)  # what the operator allows may have changed since it was kept
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
            raise DeliveryFailed(f"The connection failed: {type(error).__name__}") from None
        except Problem as problem:
            raise DeliveryFailed(problem.message) from None

    def _client(self, tenant_id: str) -> httpx2.AsyncClient:
        timeout = httpx2.Timeout(self._timeout)
        return httpx2.AsyncClient(
            headers={"User-Agent": "roost"}, timeout=timeout, transport=self._outwards(tenant_id), trust_env=False
        )


async def _drain(response: httpx2.Response) -> None:
    """Take in a little of the answer and forget it; the status is known, so that nothing here is an error."""
    seen = 0
    with suppress(TimeoutError, httpx2.HTTPError):
        async with asyncio.timeout(_LINGER):
            async for piece in response.aiter_raw():
                seen += len(piece)
                if seen >= _READ:
                    return
