"""Check that a request with a cookie comes from a page of its own address, since browsers add cookies to any. Pure."""

from collections.abc import Mapping

from roost.identity.errors import ForeignOrigin

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_OWN_SITES = frozenset({"same-origin", "none"})


def check_same_origin(
    method: str, headers: Mapping[str, str], own: str, *, upgrade: bool, is_shared: bool = False
) -> None:
    """Check that a change, or a WebSocket, comes from a page of the origin `own`. Raises ForeignOrigin.

    Browsers name the page in `Origin` (RFC 6454), `Sec-Fetch-Site` (W3C Fetch Metadata) or, old ones, `Referer`; each
    that is there must agree, and without any no browser sent the request. For a WebSocket all browsers send `Origin`.
    is_shared: pages of other origins on the same host have the cookie, too, so that a read is checked as well.
    """
    if method in SAFE_METHODS and not upgrade:
        if is_shared:
            _check_read(headers, own)
        return
    if upgrade or "origin" in headers:
        is_own = headers.get("origin") == own
    else:
        is_own = f"{headers.get('referer', own)}/".startswith(f"{own}/")
    if not is_own or not (upgrade or headers.get("sec-fetch-site", "none") in _OWN_SITES):
        raise ForeignOrigin


def _check_read(headers: Mapping[str, str], own: str) -> None:
    """Check that no page of another origin reads; a link there may lead here, but no frame."""
    is_link = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")
    is_own = headers.get("sec-fetch-site", "none") in _OWN_SITES
    if headers.get("origin", own) != own or not (is_own or is_link):
        raise ForeignOrigin
