"""ASGI application of storage gateways; it passes every other request on.

Pages of any origin may read the content, without credentials.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from starlette.types import ASGIApp, Receive, Scope, Send

from roost.core.problem import Problem, ServiceUnavailable
from roost.drivers.facilitator.contract import FacilitatorFailed
from roost.drivers.image.contract import UnsupportedImage
from roost.http.stack.url_map import PUBLIC_CONTENT
from roost.http.storage_gateway.content_responses import ContentResponses
from roost.http.storage_gateway.errors import ContentNotServed, FormatNotServed, PathNotFound
from roost.http.storage_gateway.paid_content import REQUEST_HEADERS, RESPONSE_HEADERS, PaidContent
from roost.http.storage_gateway.request import GatewayRequest, parse_request
from roost.http.storage_gateway.resolver import GatewayResolver, ResolvedContent
from roost.http.storage_gateway.response import (
    GatewayResponse,
    ResponseOutput,
    header_lines,
    send_response,
    text_response,
)
from roost.http.storage_gateway.response_cache import CachedResponse, ResponseCache
from roost.http.storage_gateway.site_pages import SitePages
from roost.storage.content.errors import ContentNotFound
from roost.storage.gateways.analytics.service import GatewayHitCounter
from roost.web.errors import STATUS, problem_headers
from roost.web.rate_limit_fields import FIELD_NAMES
from roost.web.request_context import security_headers
from roost.web.url_rule import UrlFamily, rule_of

_RESPONSE_TIMEOUT = 30.0
"""Seconds until a response begins."""
_PAID_TIMEOUT = 75.0
"""The same for a response that is paid for, with the limits of the facilitator."""
_INDEX = "ERR_ID:00004 - This is a storage gateway: content is at " + PUBLIC_CONTENT + "{cid}"
_METHODS = "GET, HEAD, OPTIONS"
_CORS = (
    (b"Access-Control-Allow-Origin", b"*"),
    (
        b"Access-Control-Expose-Headers",
        (
            b"Accept-Ranges, Content-Disposition, Content-Length, Content-Location, Content-Range, ETag, X-Ipfs-Path, "
            b"X-Error-Code, X-Ipfs-Roots, X-Request-Id, pinata-signature, Retry-After, "
        )
        + ", ".join((*FIELD_NAMES, *RESPONSE_HEADERS)).encode(),
    ),
)
OWN_STATUS: Mapping[type[Problem], int] = {FormatNotServed: 406, UnsupportedImage: 415, FacilitatorFailed: 502}
_PREFLIGHT = {
    "Access-Control-Allow-Methods": _METHODS,
    "Access-Control-Allow-Headers": "Accept, Cache-Control, Content-Type, If-Match, If-None-Match, If-Range, Range, "
    "User-Agent, X-Requested-With, x-pinata-gateway-token, "
    # The clients of x402 send the last one, which has a meaning in responses only.
    + ", ".join((*REQUEST_HEADERS, "Access-Control-Expose-Headers")),
    "Access-Control-Max-Age": "86400",
}


class ContentLookupTimeout(ServiceUnavailable):
    message = "The content could not be read in time"


@dataclass(frozen=True)
class StorageGatewayApp:
    _next_app: ASGIApp
    _resolver: GatewayResolver
    _responses: ContentResponses
    _counter: GatewayHitCounter
    _cache: ResponseCache
    _paid_content: PaidContent

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or rule_of(scope).family not in {UrlFamily.CONTENT, UrlFamily.CONTENT_INDEX}:
            await self._next_app(scope, receive, send)
            return
        version = self._cache.data_version()
        response, served = await self._respond(scope)
        if served is not None:
            self._keep(scope, version, response, *served)
        output = ResponseOutput(send)
        try:
            await send_response(response, _CORS, head=scope["method"] == "HEAD", receive=receive, send=output)
        finally:
            if served is not None and response.status < 400:
                self._counter_of(*served, response.status)(served[0].headers, output.sent)

    async def _respond(self, scope: Scope) -> tuple[GatewayResponse, tuple[GatewayRequest, ResolvedContent] | None]:
        """Return the response, with the request and its content if content is served."""
        if scope["method"] == "OPTIONS":
            return GatewayResponse(204, _PREFLIGHT), None
        if scope["method"] not in {"GET", "HEAD"}:
            return text_response(405, "Method not allowed", {"Allow": _METHODS}), None
        if rule_of(scope).family is UrlFamily.CONTENT_INDEX:
            return text_response(404, _INDEX), None
        request = None
        try:
            request = parse_request(scope)
            async with asyncio.timeout(_PAID_TIMEOUT if request.is_paid else _RESPONSE_TIMEOUT):
                return await self._serve(request)
        except TimeoutError:
            return _error_response(ContentLookupTimeout(), request), None
        except Problem as problem:
            return _error_response(problem, request), None

    async def _serve(self, request: GatewayRequest) -> tuple[GatewayResponse, tuple[GatewayRequest, ResolvedContent]]:
        if request.is_paid:
            response, content = await self._paid_content.create_response(request)
            return response, (request, content)
        try:
            content = await self._resolver.resolve(request)
            return await self._responses.create_response(request, content), (request, content)
        except PathNotFound:
            return await SitePages(self._resolver, self._responses).create_response(request)

    def _counter_of(
        self, request: GatewayRequest, content: ResolvedContent, status: int
    ) -> Callable[[Mapping[str, str], int], None]:
        """Return a function that counts a response with this status, given request headers and sent bytes."""
        gateway, network = content.gateway, content.network
        record = self._counter.record_response
        return partial(record, gateway.tenant_id, gateway.id, network, request.cid, request.name, status)

    def _keep(
        self, scope: Scope, version: int, response: GatewayResponse, request: GatewayRequest, content: ResolvedContent
    ) -> None:
        """Keep the response for other clients if it is small, complete, and the same for all of them."""
        key = scope["state"].get("cache_key")
        if key is None or response.status != 200 or response.rest is not None or not content.shared:
            return
        lines = (*security_headers(scope), *_CORS, *header_lines(response))
        head = b"".join((b"HTTP/1.1 200 OK\r\n", *(b"%b: %b\r\n" % line for line in lines)))
        self._cache.add(key, version, CachedResponse(head, response.first, self._counter_of(request, content, 200)))


def _error_response(problem: Problem, request: GatewayRequest | None) -> GatewayResponse:
    problem = ContentNotServed() if isinstance(problem, ContentNotFound) else problem
    status = OWN_STATUS.get(type(problem), STATUS[problem.kind])
    if (
        isinstance(problem, ContentNotServed)
        and request is not None
        and "only-if-cached" in request.headers.get("cache-control", "").lower()
    ):
        status = 412
    return text_response(status, problem.message, problem_headers(problem))
