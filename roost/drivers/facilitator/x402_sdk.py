"""What needs the x402 SDK, which this module imports: payments and answers in its forms, and its HTTP transport.

The transport has no proxies, and bounded answers in no coding.
"""

from collections.abc import AsyncIterator
from typing import cast

import httpx
from x402.schemas import PaymentPayload, PaymentRequirements, SettleResponse, VerifyResponse
from x402.schemas.v1 import PaymentPayloadV1, PaymentRequirementsV1

from roost.drivers.facilitator.contract import (
    ANSWER_LIMIT,
    FacilitatorFailed,
    PaymentRequest,
    PaymentSettlement,
    Verification,
)

Payload = PaymentPayload | PaymentPayloadV1
Requirements = PaymentRequirements | PaymentRequirementsV1
_REASON_LENGTH, _HASH_LENGTH = 200, 100
_CONNECTIONS = httpx.Limits(max_connections=64, max_keepalive_connections=8, keepalive_expiry=2.0)
"""A server closes idle connections after some seconds; a request that met the end of one would be left open."""


def to_sdk(request: PaymentRequest) -> tuple[Payload, Requirements]:
    """Convert a request. Raises ValueError for one that is malformed."""
    if request.version == 1:
        payload: Payload = PaymentPayloadV1.model_validate(request.payload)
        return payload, PaymentRequirementsV1.model_validate(request.requirements)
    return PaymentPayload.model_validate(request.payload), PaymentRequirements.model_validate(request.requirements)


def from_verify_response(answer: VerifyResponse) -> Verification:
    return Verification(answer.is_valid, answer.payer, _shorten(answer.invalid_reason))


def from_settle_response(answer: SettleResponse) -> PaymentSettlement:
    transaction = answer.transaction[:_HASH_LENGTH]
    reason = _shorten(answer.error_reason)
    return PaymentSettlement(answer.success, transaction, answer.network, answer.payer, answer.amount, reason)


def _shorten(reason: str | None) -> str | None:
    return None if reason is None else reason[:_REASON_LENGTH]


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
