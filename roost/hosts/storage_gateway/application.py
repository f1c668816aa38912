"""ASGI application of storage gateways; it passes every other request on.

Pages of any origin may read the content, without credentials.
"""

import asyncio
from collections.abc import Mapping

from starlette.types import ASGIApp, Receive, Scope, Send

from roost.core.problem import Problem, ServiceUnavailable
from roost.drivers.image.contract import UnsupportedImage
from roost.hosts.storage_gateway.content_responses import ContentResponses
from roost.hosts.storage_gateway.errors import ContentNotServed, FormatNotServed
from roost.hosts.storage_gateway.request import GatewayRequest, parse_request
from roost.hosts.storage_gateway.resolver import GatewayResolver, ResolvedContent
from roost.hosts.storage_gateway.response import GatewayResponse, ResponseOutput, send_response, text_response
from roost.hosts.url_map import PUBLIC_CONTENT
from roost.storage.analytics.hit_counter import GatewayHitCounter
from roost.storage.content.errors import ContentNotFound
from roost.web.errors import STATUS
from roost.web.url_rule import UrlFamily, rule_of

_RESPONSE_TIMEOUT = 30.0
"""Seconds until a response begins."""
_INDEX = "ERR_ID:00004 - This is a storage gateway: content is at " + PUBLIC_CONTENT + "{cid}"
_METHODS = "GET, HEAD, OPTIONS"
_CORS = (
    (b"Access-Control-Allow-Origin", b"*"),
    (
        b"Access-Control-Expose-Headers",
        (
            b"Accept-Ranges, Content-Disposition, Content-Length, Content-Location, Content-Range, ETag, X-Ipfs-Path, "
            b"X-Ipfs-Roots, X-Request-Id, pinata-signature"
        ),
    ),
)
_OWN_STATUS: Mapping[type[Problem], int] = {FormatNotServed: 406, UnsupportedImage: 415}
_PREFLIGHT = {
    "Access-Control-Allow-Methods": _METHODS,
    "Access-Control-Allow-Headers": "Accept, Cache-Control, Content-Type, If-Match, If-None-Match, If-Range, Range, "
    "User-Agent, X-Requested-With, x-pinata-gateway-token",
    "Access-Control-Max-Age": "86400",
}


class ContentLookupTimeout(ServiceUnavailable):
    message = "The content could not be read in time"


class StorageGatewayApp:
    def __init__(
        self, next_app: ASGIApp, resolver: GatewayResolver, responses: ContentResponses, counter: GatewayHitCounter
    ) -> None:
        self._next_app = next_app
        self._resolver = resolver
        self._responses = responses
        self._counter = counter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or rule_of(scope).family not in {UrlFamily.CONTENT, UrlFamily.CONTENT_INDEX}:
            await self._next_app(scope, receive, send)
            return
        response, served = await self._respond(scope)
        output = ResponseOutput(send)
        try:
            await send_response(response, _CORS, head=scope["method"] == "HEAD", receive=receive, send=output)
        finally:
            if served is not None and response.status < 400:
                self._count(*served, response.status, output.sent)

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
            async with asyncio.timeout(_RESPONSE_TIMEOUT):
                content = await self._resolve(request)
                return await self._responses.create_response(request, content), (request, content)
        except TimeoutError:
            return _error_response(ContentLookupTimeout(), request), None
        except Problem as problem:
            return _error_response(problem, request), None

    async def _resolve(self, request: GatewayRequest) -> ResolvedContent:
        if request.is_private:
            return await self._resolver.resolve_private(
                request.gateway, request.method, request.url, request.cid, request.path
            )
        return await self._resolver.resolve_public(request.gateway, request.visitor, request.cid, request.path)

    def _count(self, request: GatewayRequest, content: ResolvedContent, status: int, sent: int) -> None:
        gateway, network = content.gateway, content.scope.network
        self._counter.record_response(
            gateway.tenant_id, gateway.id, network, request.cid, request.name, status, request.headers, sent
        )


def _error_response(problem: Problem, request: GatewayRequest | None) -> GatewayResponse:
    problem = ContentNotServed() if isinstance(problem, ContentNotFound) else problem
    status = _OWN_STATUS.get(type(problem), STATUS[problem.kind])
    if (
        isinstance(problem, ContentNotServed)
        and request is not None
        and "only-if-cached" in request.headers.get("cache-control", "")
    ):
        status = 412
    retry = {} if problem.retry_after is None else {"Retry-After": str(max(1, round(problem.retry_after)))}
    return text_response(status, problem.message, retry)
