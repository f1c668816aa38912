"""HTTP transport of the facilitator's client: without proxies, with bounded answers in no coding."""

from collections.abc import AsyncIterator
from typing import cast

import httpx

from roost.drivers.facilitator.contract import ANSWER_LIMIT, FacilitatorFailed

_CONNECTIONS = httpx.Limits(max_connections=64, max_keepalive_connections=8, keepalive_expiry=2.0)
"""A server closes idle connections after some seconds; a request that met the end of one would be left open."""


class BoundedTransport(httpx.AsyncBaseTransport):
    """Raises FacilitatorFailed for an answer that is too large or encoded."""

    def __init__(self) -> None:
        self._inner = httpx.AsyncHTTPTransport(trust_env=False, limits=_CONNECTIONS)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        request.headers["Accept-Encoding"] = "identity"
        response = await self._inner.handle_async_request(request)
        stream = cast("httpx.AsyncByteStream", response.stream)
        if response.headers.get("content-encoding", "identity") != "identity":
            await stream.aclose()
            raise FacilitatorFailed("The facilitator of payments sent an encoded answer")
        return httpx.Response(
            response.status_code,
            headers=response.headers,
            stream=_BoundedStream(stream),
            extensions=response.extensions,
        )

    async def aclose(self) -> None:
        await self._inner.aclose()


class _BoundedStream(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for piece in self._stream:
            size += len(piece)
            if size > ANSWER_LIMIT:
                raise FacilitatorFailed(f"The facilitator of payments sent more than {ANSWER_LIMIT} bytes")
            yield piece

    async def aclose(self) -> None:
        await self._stream.aclose()
