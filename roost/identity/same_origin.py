"""Check that a request with a cookie comes from a page of its own address, since browsers add cookies to any. Pure."""

from collections.abc import Mapping

from roost.identity.errors import ForeignOrigin

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITES = frozenset({"same-origin", "none"})


def check_same_origin(method: str, headers: Mapping[str, str], own: str, *, upgrade: bool) -> None:
    """Check that a change, or a WebSocket, comes from a page of the origin `own`. Raises ForeignOrigin.

    Browsers name the page in `Origin` (RFC 6454), `Sec-Fetch-Site` (W3C Fetch Metadata) or, old ones, `Referer`; each
    that is there must agree, and without any no browser sent the request. For a WebSocket all browsers send `Origin`.
    """
    if method in SAFE_METHODS and not upgrade:
        return
    if upgrade or "origin" in headers:
        is_own = headers.get("origin") == own
    else:
        is_own = f"{headers.get('referer', own)}/".startswith(f"{own}/")
    if not is_own or not (upgrade or headers.get("sec-fetch-site", "none") in _OWN_SITES):
        raise ForeignOrigin
