"""What authentication needs to know of a request, and whether a page of its own address sent it."""

from collections.abc import Mapping
from dataclasses import dataclass

from starlette.requests import HTTPConnection

from roost.core.right import Right
from roost.identity.credentials import CredentialSource, find_cookie, find_credential, find_key_pair
from roost.identity.errors import ForeignOrigin
from roost.web.url_rule import HostAddress, address_of

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITES = frozenset({"same-origin", "none"})


@dataclass(slots=True)  # to freeze it would double the time to make one
class AuthRequest:
    """A request to authenticate.

    limited_client: the client as limits count it; None if they do not apply to it.
    counts_use: whether the request is one of the limited uses of its key.
    right: what the operation needs; None if there is no such operation. `scope` is the first part of the scopes that
        give it.
    """

    host: HostAddress
    method: str
    headers: Mapping[str, str]
    query: str
    peer: str
    upgrade: bool = False
    limited_client: str | None = None
    counts_use: bool = True
    right: Right | None = None
    scope: str = "org:agents"


def auth_request_of(connection: HTTPConnection) -> AuthRequest:
    """Create the AuthRequest of a connection that the host router has classified."""
    address = address_of(connection.scope)
    return AuthRequest(
        host=address.host,
        method=connection.scope.get("method", "GET"),
        headers=dict(reversed(connection.headers.items())),
        query=connection.scope["query_string"].decode("latin-1"),
        peer=connection.client.host if connection.client else "",
        upgrade=connection.scope["type"] == "websocket",
        limited_client=address.limited_client,
        right=address.right,
        scope=address.rule.scope,
    )


def session_cookie_pair(request: AuthRequest) -> str:
    """Return what is left of the request's cookies without all others; empty if no session counts."""
    token = find_session_token(request)
    return "" if token is None else f"{request.host.session_cookie}={token}"


def find_session_token(request: AuthRequest) -> str | None:
    """Return the token of the cookie that counts at this address, unless the request has another credential."""
    if request.host.session_cookie is None or find_key_pair(request.headers) is not None:
        return None
    other = find_credential(request.headers, request.query)
    if other is not None and other.source is not CredentialSource.COOKIE:
        return None
    return find_cookie(request.headers, request.host.session_cookie)


def check_same_origin(request: AuthRequest, *, is_shared: bool = False) -> None:
    """Check that a change, or a WebSocket, comes from a page of the address's own origin. Raises ForeignOrigin.

    Browsers add cookies to requests of any page. They name the page in `Origin` (RFC 6454), `Sec-Fetch-Site` (W3C Fetch
    Metadata) or, old ones, `Referer`; each that is there must agree, and without any no browser sent the request. For a
    WebSocket all browsers send `Origin`.
    is_shared: pages of other origins on the same host have the cookie, too, so that a read is checked as well.
    """
    headers, own = request.headers, request.host.origin
    if request.method in SAFE_METHODS and not request.upgrade:
        if is_shared:
            _check_read(headers, own)
        return
    if request.upgrade or "origin" in headers:
        is_own = headers.get("origin") == own
    else:
        is_own = f"{headers.get('referer', own)}/".startswith(f"{own}/")
    if not is_own or not (request.upgrade or headers.get("sec-fetch-site", "none") in _OWN_SITES):
        raise ForeignOrigin


def _check_read(headers: Mapping[str, str], own: str) -> None:
    """Check that no page of another origin reads; a link there may lead here, but no frame."""
    is_link = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")
    is_own = headers.get("sec-fetch-site", "none") in _OWN_SITES
    if headers.get("origin", own) != own or not (is_own or is_link):
        raise ForeignOrigin
