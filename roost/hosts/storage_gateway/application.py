"""The addresses of storage gateways: reads the request, has it answered in bounded time, and tells errors as text.

Everything may be read from pages of other origins, without credentials. What is not content goes on to the application.
"""

import asyncio

from starlette.types import ASGIApp, Receive, Scope, Send

from roost.core.problem import Problem, ServiceUnavailable
from roost.drivers.image.contract import UnsupportedImage
from roost.hosts.storage_gateway import request as asking
from roost.hosts.storage_gateway.content_responses import ContentResponses
from roost.hosts.storage_gateway.errors import ContentNotServed
from roost.hosts.storage_gateway.request import GatewayRequest
from roost.hosts.storage_gateway.resolver import GatewayResolver, ResolvedContent
from roost.hosts.storage_gateway.response import GatewayResponse, ResponseOutput, deliver, text
from roost.hosts.url_map import PUBLIC_CONTENT
from roost.storage.analytics.hit_counter import GatewayHitCounter
from roost.storage.content.errors import ContentNotFound
from roost.web.errors import STATUS
from roost.web.url_rule import UrlFamily, rule_of

_PREPARE = 30.0
"""Seconds until an answer begins."""
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
_PREFLIGHT = {
    "Access-Control-Allow-Methods": _METHODS,
    "Access-Control-Allow-Headers": "Accept, Cache-Control, Content-Type, If-Match, If-None-Match, If-Range, Range, "
    "User-Agent, X-Requested-With, x-pinata-gateway-token",
    "Access-Control-Max-Age": "86400",
}


class ContentLookupTimeout(ServiceUnavailable):
    message = "The content could not be read in time"


class StorageGatewayApp:
    """others: whoever answers at all other addresses, and what is not content at these."""

    def __init__(
        self, others: ASGIApp, serving: GatewayResolver, answers: ContentResponses, counter: GatewayHitCounter
    ) -> None:
        self._others = others
        self._serving = serving
        self._answers = answers
        self._counter = counter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or rule_of(scope).family not in {UrlFamily.CONTENT, UrlFamily.CONTENT_INDEX}:
            await self._others(scope, receive, send)
            return
        reply, served = await self._reply(scope)
        outlet = ResponseOutput(send)
        try:
            await deliver(reply, _CORS, head=scope["method"] == "HEAD", receive=receive, send=outlet)
        finally:
            if served is not None and reply.status < 400:
                self._count(*served, reply.status, outlet.sent)

    async def _reply(self, scope: Scope) -> tuple[GatewayResponse, tuple[GatewayRequest, ResolvedContent] | None]:
        """The answer, and what was found for whom."""
        if scope["method"] == "OPTIONS":
            return GatewayResponse(204, _PREFLIGHT), None
        if scope["method"] not in {"GET", "HEAD"}:
            return text(405, "Method not allowed", {"Allow": _METHODS}), None
        if rule_of(scope).family is UrlFamily.CONTENT_INDEX:
            return text(404, _INDEX), None
        asked = None
        try:
            asked = asking.read(scope)
            async with asyncio.timeout(_PREPARE):
                found = await self._find(asked)
                return await self._answers.answer(asked, found), (asked, found)
        except TimeoutError:
            return _told(ContentLookupTimeout(), asked), None
        except Problem as problem:
            return _told(problem, asked), None

    async def _find(self, asked: GatewayRequest) -> ResolvedContent:
        if asked.is_private:
            return await self._serving.private(asked.gateway, asked.method, asked.url, asked.cid, asked.path)
        return await self._serving.public(asked.gateway, asked.visitor, asked.cid, asked.path)

    def _count(self, asked: GatewayRequest, found: ResolvedContent, status: int, sent: int) -> None:
        gateway, network = found.gateway, found.scope.network
        self._counter.record_response(
            gateway.tenant_id, gateway.id, network, asked.cid, asked.name, status, asked.headers, sent
        )


def _told(problem: Problem, asked: GatewayRequest | None) -> GatewayResponse:
    problem = ContentNotServed() if isinstance(problem, ContentNotFound) else problem
    status = 415 if isinstance(problem, UnsupportedImage) else STATUS[problem.kind]
    if (
        isinstance(problem, ContentNotServed)
        and asked is not None
        and "only-if-cached" in asked.headers.get("cache-control", "")
    ):
        status = 412
    again = {} if problem.retry_after is None else {"Retry-After": str(max(1, round(problem.retry_after)))}
    return text(status, problem.message, again)
