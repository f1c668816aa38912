"""The rate limits of this server: requests and bytes of each caller, and of each host.

A caller is a valid credential, an agent at its relay, or the network of a client without a valid credential: so guesses
use up no limit of others. A host is the address of an agent, a domain of it, or a storage gateway.
"""

from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from roost.core import clock
from roost.core.problem import Problem
from roost.core.rate_limit import RateLimiter, RateLimitExceeded, RatePolicy
from roost.identity.auth_request import AuthRequest, auth_request_of
from roost.identity.caller import Caller
from roost.web import errors
from roost.web.rate_limit_fields import RateLimitFields, parse_lines
from roost.web.url_rule import ErrorForm, HostKind, UrlFamily, UrlRule, address_of

_CHARGE_BYTES = 64 * 1024  # at once, while they flow
Admit = Callable[[AuthRequest, UrlFamily], Awaitable[Caller]]
"""Return the caller of a valid credential, else raise a Problem: `Authenticator.identify_caller`."""
FindKnown = Callable[[AuthRequest], bytes | None]
"""Return the digest of a credential that is known to be valid, without I/O: `KnownCredentials.find`."""

_PUBLIC = (b"access-control-allow-origin", b"*")
"""As in all responses of storage gateways: without it, pages would see no status."""


class RateLimits:
    """Limiters of callers and hosts, in units a minute; None for what is not limited.

    limits_loopback: whether programs on this machine are limited, too.
    """

    def __init__(
        self,
        *,
        caller_requests: int | None = None,
        caller_bytes: int | None = None,
        host_requests: int | None = None,
        host_bytes: int | None = None,
        limits_loopback: bool = False,
    ) -> None:
        self.limits_loopback = limits_loopback
        self._caller_requests = _create_limiter("requests", "requests", caller_requests)
        self._caller_bytes = _create_limiter("bytes", "bytes", caller_bytes)
        self._host_requests = _create_limiter("host-requests", "requests to this address", host_requests)
        self._host_bytes = _create_limiter("host-bytes", "bytes at this address", host_bytes)
        callers = [limiter for limiter in (self._caller_requests, self._caller_bytes) if limiter is not None]
        hosts = [limiter for limiter in (self._host_requests, self._host_bytes) if limiter is not None]
        self._caller_fields, self._all_fields = _create_fields(callers), _create_fields(callers + hosts)
        self.limiters = callers + hosts

    def start_request(
        self, client: str | None, host: str | None = None, credential: bytes | None = None
    ) -> "RequestUsage":
        """Count a request on its credential if that is known to be valid, else on its client; and on its host.

        So invented credentials give no more requests. Every request of the server counts here, and none of a client
        without limits (None). Raises RateLimitExceeded.
        """
        if client is None:
            return UNCOUNTED
        caller, now = credential or client, clock.monotonic_seconds()
        states: list[float] = []  # those of a caller first: its refused requests must not count on the host
        if self._caller_requests is not None:
            states.append(self._caller_requests.take(caller, now))
        if self._caller_bytes is not None:
            states.append(self._caller_bytes.check(caller, now))
        if host is not None and self._host_requests is not None:
            states.append(self._host_requests.take(host, now))
        if host is not None and self._host_bytes is not None:
            states.append(self._host_bytes.check(host, now))
        fields = self._caller_fields if host is None else self._all_fields
        return RequestUsage(self, caller, host, b"" if fields is None else fields.format_lines(states[0]))

    def charge_requests(self, caller: Hashable, count: int) -> None:
        """Count an admitted request as `count` more; those of the caller that follow wait for them."""
        if self._caller_requests is not None:
            self._caller_requests.charge(caller, count, clock.monotonic_seconds())

    def charge_bytes(self, caller: Hashable, host: str | None, size: int) -> None:
        now = clock.monotonic_seconds()
        if self._caller_bytes is not None:
            self._caller_bytes.charge(caller, size, now)
        if host is not None and self._host_bytes is not None:
            self._host_bytes.charge(host, size, now)


@dataclass(slots=True, eq=False)
class RequestUsage:
    """What one admitted request uses. caller: None if it is not counted. header_lines: the fields for its response."""

    _limits: RateLimits
    _caller: bytes | str | None
    _host: str | None
    header_lines: bytes
    _uncharged: int = 0

    def charge_requests(self, count: int) -> None:
        """Count the request as `count` more."""
        if self._caller is not None:
            self._limits.charge_requests(self._caller, count)

    def count_bytes(self, size: int) -> None:
        """Count bytes of the request or of its response as they flow."""
        self._uncharged += size
        if self._uncharged >= _CHARGE_BYTES:
            self.charge_rest()

    def charge_rest(self) -> None:
        """Charge what was counted: the request has ended."""
        if self._caller is not None:
            self._limits.charge_bytes(self._caller, self._host, self._uncharged)
        self._uncharged = 0


def _create_limiter(name: str, unit: str, quota: int | None) -> RateLimiter | None:
    return None if quota is None else RateLimiter(RatePolicy(name, unit, quota))


def _create_fields(limiters: Sequence[RateLimiter]) -> RateLimitFields | None:
    return RateLimitFields(limiters) if limiters else None


UNCOUNTED = RequestUsage(RateLimits(), None, None, b"")
"""What a request uses that no limit counts, or none yet."""


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
