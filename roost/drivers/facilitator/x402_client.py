"""Facilitator at a URL that the operator names, asked by the SDK of x402. The SDK is loaded at the first payment."""

import asyncio
import importlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from roost.core.machine.network_advice import describe_network_error
from roost.core.machine.threads import run_in_daemon_thread
from roost.core.sensitive import Sensitive
from roost.drivers.facilitator.contract import (
    RETRY_SECONDS,
    SETTLE_SECONDS,
    VERIFY_SECONDS,
    Facilitator,
    FacilitatorFailed,
    FacilitatorUnavailable,
    PaymentRequest,
    PaymentSettlement,
    Verification,
)

if TYPE_CHECKING:
    import httpx
    from x402.http.facilitator_client import HTTPFacilitatorClient


_VERIFY_CALLS = 32
"""Payments that are verified at once, half of the connections, so that settlements never wait for them."""


class X402Facilitator(Facilitator):
    """Client of one event loop. token: sent as a bearer token."""

    def __init__(
        self,
        url: str,
        token: Sensitive[str] | None = None,
        *,
        verify_seconds: float = VERIFY_SECONDS,
        settle_seconds: float = SETTLE_SECONDS,
    ) -> None:
        self._url = url
        self._token = token
        self._verify_seconds, self._settle_seconds = verify_seconds, settle_seconds
        self._verifying = asyncio.Semaphore(_VERIFY_CALLS)
        self._opening = asyncio.Lock()
        self._http: httpx.AsyncClient | None = None
        self._client: HTTPFacilitatorClient | None = None

    async def verify(self, request: PaymentRequest) -> Verification:
        async with self._asking(self._verify_seconds) as client, self._verifying:
            from roost.drivers.facilitator.x402_sdk import from_verify_response, to_sdk

            return from_verify_response(await client.verify(*to_sdk(request)))

    async def settle(self, request: PaymentRequest) -> PaymentSettlement:
        async with self._asking(self._settle_seconds) as client:
            from roost.drivers.facilitator.x402_sdk import from_settle_response, to_sdk

            return from_settle_response(await client.settle(*to_sdk(request)))

    async def close(self) -> None:
        if self._http is not None:
            await self._http.aclose()
        self._http = self._client = None

    @asynccontextmanager
    async def _asking(self, seconds: float) -> AsyncGenerator["HTTPFacilitatorClient"]:
        """Give a client whose errors are those of the contract."""
        client = await self._open()
        import httpx

        try:
            async with asyncio.timeout(seconds):
                yield client
        except (TimeoutError, httpx.TimeoutException):
            message = f"The facilitator of payments did not answer within {seconds:g} s"
            raise FacilitatorUnavailable(message, retry_after=RETRY_SECONDS) from None
        except httpx.HTTPError as error:
            message = f"The facilitator of payments cannot be reached: {describe_network_error(error)}"
            raise FacilitatorUnavailable(message, retry_after=RETRY_SECONDS) from None
        except (ValueError, RecursionError):  # of the SDK for another status, and for malformed answers
            raise FacilitatorFailed("The facilitator of payments answered with an error or malformed") from None

    async def _open(self) -> "HTTPFacilitatorClient":
        async with self._opening:
            if self._client is None:
                await run_in_daemon_thread(_load_sdk)
                self._http, self._client = self._connect()
            return self._client

    def _connect(self) -> tuple["httpx.AsyncClient", "HTTPFacilitatorClient"]:
        import httpx
        from x402.http.facilitator_client import HTTPFacilitatorClient
        from x402.http.facilitator_client_base import CreateHeadersAuthProvider, FacilitatorConfig

        from roost.drivers.facilitator.x402_sdk import BoundedTransport

        timeout = httpx.Timeout(self._settle_seconds)
        http = httpx.AsyncClient(
            headers={"User-Agent": "roost"}, timeout=timeout, transport=BoundedTransport(), trust_env=False
        )
        sign_in = None if self._token is None else CreateHeadersAuthProvider(self._create_headers)
        return http, HTTPFacilitatorClient(FacilitatorConfig(self._url, http_client=http, auth_provider=sign_in))

    def _create_headers(self) -> dict[str, dict[str, str]]:
        assert self._token is not None
        bearer = {"Authorization": f"Bearer {self._token.reveal()}"}
        return {"verify": bearer, "settle": bearer, "supported": bearer}


def _load_sdk() -> None:
    """Import what takes long, in a thread: the first payment would stop the loop otherwise."""
    for name in ("roost.drivers.facilitator.x402_sdk", "x402.http.facilitator_client"):
        importlib.import_module(name)
