"""Private content that must be paid for (x402). One payment pays for one response, to GET.

In this order: the content exists and can be sent as asked, the payment is what is asked for and would succeed, the
beginning of the content is read, the payment is settled, the content is sent.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from urllib.parse import quote

from roost.core.problem import error_code
from roost.http.stack.url_map import PAID_CONTENT
from roost.http.storage_gateway.content_responses import ContentResponses
from roost.http.storage_gateway.errors import ContentNotServed, InvalidGatewayUrl
from roost.http.storage_gateway.headers import cid_text
from roost.http.storage_gateway.images import has_image_options
from roost.http.storage_gateway.request import GatewayRequest
from roost.http.storage_gateway.resolver import GatewayResolver, ResolvedContent
from roost.http.storage_gateway.response import GatewayResponse
from roost.storage.payments import forms
from roost.storage.payments.model import (
    ContentNotForSale,
    InstructionChanged,
    PaidResource,
    PaymentOffer,
    PaymentRefused,
)
from roost.storage.payments.service import PaymentService, VerifiedPayment
from roost.web.errors import ERROR_CODE

REQUEST_HEADERS = ("PAYMENT-SIGNATURE", "X-PAYMENT")
"""Headers of a payment: version 2, version 1; either may have either version."""
RESPONSE_HEADERS = ("PAYMENT-REQUIRED", "PAYMENT-RESPONSE", "X-PAYMENT-RESPONSE")
_MISSING = "Payment is required"


@dataclass(frozen=True)
class PaidContent:
    _resolver: GatewayResolver
    _responses: ContentResponses
    _payments: PaymentService
    _gateway_origin: Callable[[str], str]
    """Returns the public origin of a gateway, by its name."""

    async def create_response(self, request: GatewayRequest) -> tuple[GatewayResponse, ResolvedContent]:
        """Create the response: the content, or 402 with what must be paid for it.

        Raises what the resolver and the responses raise, ContentNotServed for what is not for sale, and problems of
        facilitators and payments.
        """
        if "format" in request.query or has_image_options(request.query):
            raise InvalidGatewayUrl("ERR_ID:00004 - Paid content is served as it is, without format and img- options")
        content = await self._resolver.resolve(request)
        offer = await self._get_offer(content, request)
        probe = await self._responses.create_response(replace(request, head=True), content)
        if probe.rest is not None:
            await probe.rest.aclose()
        if probe.status >= 300:
            return probe, content
        mime = await self._responses.detect_mime(content, request.name)
        resource = PaidResource(self._url(request, content), offer.description, mime)
        try:
            return await self._take_payment(request, content, offer, resource), content
        except InstructionChanged as problem:
            offer = await self._get_offer(content, request)
            return _payment_required(problem, offer, resource), content
        except PaymentRefused as problem:
            return _payment_required(problem, offer, resource), content

    async def _take_payment(
        self, request: GatewayRequest, content: ResolvedContent, offer: PaymentOffer, resource: PaidResource
    ) -> GatewayResponse:
        """Take the payment of a request and create the response with the content. Raises PaymentRefused."""
        header = next((value for name in REQUEST_HEADERS if (value := request.headers.get(name.lower()))), None)
        if header is None or request.head:
            raise PaymentRefused(_MISSING)
        payment = forms.parse_payment(header)
        verified = await self._payments.verify(offer, payment, resource)
        response = await self._responses.create_response(request, content)
        return await self._settle(response, verified, payment.x402_version)

    async def _settle(self, response: GatewayResponse, verified: VerifiedPayment, version: int) -> GatewayResponse:
        try:
            payment = await self._payments.settle(verified)
        except BaseException:
            if response.rest is not None:
                await response.rest.aclose()
            raise
        receipt = forms.create_receipt(version, verified.terms, payment.payer, payment.transaction_hash or "")
        name = "PAYMENT-RESPONSE" if version == 2 else "X-PAYMENT-RESPONSE"
        return replace(response, headers={**response.headers, name: forms.encode_header(receipt)})

    async def _get_offer(self, content: ResolvedContent, request: GatewayRequest) -> PaymentOffer:
        try:
            return await self._payments.get_offer(content.gateway.tenant_id, request.cid)
        except ContentNotForSale:
            raise ContentNotServed from None

    def _url(self, request: GatewayRequest, content: ResolvedContent) -> str:
        path = "/".join((cid_text(request.cid), *map(quote, request.path)))
        return f"{self._gateway_origin(content.gateway.domain)}{PAID_CONTENT}{path}"


def _payment_required(problem: PaymentRefused, offer: PaymentOffer, resource: PaidResource) -> GatewayResponse:
    """Create the response 402: version 1 in its body, version 2 in a header."""
    body = f"{json.dumps(forms.required_payment_v1(problem.message, offer.terms, resource))}\n".encode()
    headers = {
        "Content-Type": "application/json",
        "Cache-Control": "no-store",
        "PAYMENT-REQUIRED": forms.encode_header(forms.required_payment(problem.message, offer.terms, resource)),
        ERROR_CODE: error_code(type(problem)),
    }
    return GatewayResponse(402, headers, body, length=len(body))
