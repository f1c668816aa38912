"""The middleware stack in front of the application, and its authentication before a request body is read."""

from collections import Counter
from collections.abc import Sequence

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from roost.core.problem import Problem, TooManyRequests
from roost.http.stack.address import HostAddresses
from roost.http.stack.client_address import Network
from roost.http.stack.host_router import HostRouter
from roost.http.stack.rate_limits import Admit, FindKnown, RateLimitMiddleware, RateLimits
from roost.identity.auth_request import auth_request_of
from roost.web import access_log, errors
from roost.web.access_log import Observe
from roost.web.body_limit import BodyLimitMiddleware
from roost.web.cors import CorsMiddleware
from roost.web.request_context import RequestContextMiddleware
from roost.web.url_rule import rule_of

_MAX_CONCURRENT = 256


class TooManyConcurrentRequests(TooManyRequests):
    message = "Too many requests at once"


class EarlyAuthMiddleware:
    """Middleware that rejects bodies of unknown callers unread, where the URL map requires it.

    The framework reads a body before it resolves the caller, so an anonymous client could make the server buffer it.
    This check only identifies the caller, and limits its uploads; the handler's own dependency decides about
    permissions.
    """

    def __init__(self, app: ASGIApp, admit: Admit) -> None:
        self._app = app
        self._admit = admit
        self._active: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        rule = rule_of(scope)
        if scope["type"] != "http" or not rule.authenticates_early or not _has_body(scope):
            await self._app(scope, receive, send)
            return
        try:
            caller = await self._admit(auth_request_of(HTTPConnection(scope)), rule.family)
            key = caller.agent_id or caller.tenant_id
            if self._active[key] >= _MAX_CONCURRENT:
                raise TooManyConcurrentRequests(retry_after=1)
        except Problem as problem:
            await errors.problem_response(rule.errors, problem)(scope, receive, send)
            return
        scope["state"]["body_owner"] = caller.tenant_id
        self._active[key] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._active[key] -= 1
            if not self._active[key]:
                del self._active[key]


def _has_body(scope: Scope) -> bool:
    return any(
        name == b"transfer-encoding" or (name == b"content-length" and value.strip(b"0"))
        for name, value in scope["headers"]
    )


def add_middleware(
    app: ASGIApp,
    addresses: HostAddresses,
    admit: Admit,
    *,
    find_known: FindKnown = lambda _request: None,
    limits: RateLimits | None = None,
    trusted: Sequence[Network] = (),
    observe: Observe = access_log.write_access_log,
) -> ASGIApp:
    limits = limits or RateLimits()
    limited = RateLimitMiddleware(EarlyAuthMiddleware(BodyLimitMiddleware(app), admit), limits, admit, find_known)
    router = HostRouter(CorsMiddleware(limited), addresses, trusted, limits_loopback=limits.limits_loopback)
    return RequestContextMiddleware(router, observe)
