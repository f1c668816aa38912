"""Count requests of the application on the limits of their caller and host, and tell clients what remains."""

from collections.abc import Callable
from contextlib import suppress

from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from roost.core.problem import Problem
from roost.core.rate_limit import RateLimitExceeded
from roost.http.stack.early_auth import Admit
from roost.http.stack.rate_limits import RateLimits, RequestUsage
from roost.identity.auth_request import AuthRequest, auth_request_of
from roost.web import errors
from roost.web.rate_limit_fields import parse_lines
from roost.web.request_address import address_of
from roost.web.url_rule import ErrorForm, HostKind, UrlFamily, UrlRule

FindKnown = Callable[[AuthRequest], bytes | None]
"""Return the digest of a credential that is known to be valid, without I/O: `KnownCredentials.find`."""

_PUBLIC = (b"access-control-allow-origin", b"*")
"""As in all responses of storage gateways: without it, pages would see no status."""


class RateLimitMiddleware:
    """Middleware that answers 429 to callers and at hosts beyond their limits."""

    def __init__(self, app: ASGIApp, limits: RateLimits, admit: Admit, find_known: FindKnown) -> None:
        self._app = app
        self._limits = limits
        self._admit, self._find_known = admit, find_known

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        address = address_of(scope)
        rule, client = address.rule, address.limited_client
        if client is None or not rule.is_rate_limited:
            await self._app(scope, receive, send)
            return
        try:
            usage = await self._start_request(scope, client)
        except RateLimitExceeded as exceeded:
            await _refuse(rule, exceeded)(scope, receive, send)
            return
        scope["state"]["charge_requests"] = usage.charge_requests
        counter = _ByteCounter(usage, receive, send)
        try:
            await self._app(scope, counter.receive, counter.send)
        finally:
            usage.charge_rest()

    async def _start_request(self, scope: Scope, client: str) -> RequestUsage:
        """Count a request. Raises RateLimitExceeded.

        A credential that is not known yet is verified before its holder is refused because of others at the same
        address.
        """
        host = address_of(scope).host
        if host.kind in {HostKind.RELAY, HostKind.STORAGE_GATEWAY}:
            return self._limits.start_request(client, host.gateway)
        request = auth_request_of(HTTPConnection(scope))
        known = self._find_known(request)
        try:
            return self._limits.start_request(client, credential=known)
        except RateLimitExceeded:
            if known is not None or (known := await self._verify(request, address_of(scope).rule.family)) is None:
                raise
            return self._limits.start_request(client, credential=known)

    async def _verify(self, request: AuthRequest, family: UrlFamily) -> bytes | None:
        with suppress(Problem):
            await self._admit(request, family)
        return self._find_known(request)


def _refuse(rule: UrlRule, exceeded: RateLimitExceeded) -> Response:
    if rule.family not in {UrlFamily.CONTENT, UrlFamily.CONTENT_INDEX}:
        return errors.problem_response(rule.errors, exceeded)
    response = errors.problem_response(ErrorForm.TEXT, exceeded)
    response.raw_headers.append(_PUBLIC)
    return response


class _ByteCounter:
    """Counts what a request and its response carry, and adds the fields."""

    def __init__(self, usage: RequestUsage, receive: Receive, send: Send) -> None:
        self._usage, self._receive, self._send = usage, receive, send

    async def receive(self) -> Message:
        message = await self._receive()
        self._usage.count_bytes(_size(message))
        return message

    async def send(self, message: Message) -> None:
        if message["type"] in {"http.response.start", "websocket.accept", "websocket.http.response.start"}:
            message["headers"] = [*message.get("headers", ()), *parse_lines(self._usage.header_lines)]
        self._usage.count_bytes(_size(message))
        await self._send(message)


def _size(message: Message) -> int:
    return len(message.get("body") or message.get("bytes") or message.get("text") or b"")
