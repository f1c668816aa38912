"""The middleware stack in front of the application."""

from collections.abc import Sequence

from starlette.types import ASGIApp

from roost.http.stack.address import HostAddresses
from roost.http.stack.client_address import Network
from roost.http.stack.early_auth import Admit, EarlyAuthMiddleware
from roost.http.stack.host_router import HostRouter
from roost.http.stack.rate_limits import FindKnown, RateLimitMiddleware, RateLimits
from roost.web import access_log
from roost.web.access_log import Observe
from roost.web.body_limit import BodyLimitMiddleware
from roost.web.cors import CorsMiddleware
from roost.web.request_context import RequestContextMiddleware


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
    """Wrap the application in the middleware of a server."""
    limits = limits or RateLimits()
    limited = RateLimitMiddleware(EarlyAuthMiddleware(BodyLimitMiddleware(app), admit), limits, admit, find_known)
    router = HostRouter(CorsMiddleware(limited), addresses, trusted, limits_loopback=limits.limits_loopback)
    return RequestContextMiddleware(router, observe)
