"""ASGI application of the dashboard's pages and files; it passes every other request on.

A page is the same `index.html` at every path, with a nonce of its own for the styles that its libraries insert.
"""

from collections.abc import Mapping

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from roost.core import ids
from roost.hosts.dashboard.static_files import INDEX, StaticFile, StaticFiles
from roost.web.url_rule import UrlFamily, rule_of

_NONCE = b"__NONCE__"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
_HEADERS: Mapping[str, str] = {
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_PAGE_TYPE = "text/html; charset=utf-8"
_IMAGE_DOCUMENT = "image/svg+xml"  # would run scripts as a page of its own
_NOT_BUILT = """\
Roost runs here, but its dashboard is not built.

In the checkout that this server runs from: make dashboard. Then start the server again.

The API is at /v0 and /v3 of this address, and /openapi describes it. The command line needs no dashboard: roost --help
"""


class DashboardApp:
    def __init__(self, next_app: ASGIApp, files: StaticFiles) -> None:
        self._next_app = next_app
        self._files = files

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_own = scope["type"] == "http" and rule_of(scope).family is UrlFamily.DASHBOARD
        response = self._find_response(scope) if is_own and scope["method"] in {"GET", "HEAD"} else None
        await (response or self._next_app)(scope, receive, send)

    def _find_response(self, scope: Scope) -> Response | None:
        """Return the page or the file at a path; None for a program that asks for neither."""
        path, headers = scope["path"], _fields(scope)
        file = None if path == INDEX else self._files.find(path)
        if file is not None:
            return _file_response(file, headers, is_head=scope["method"] == "HEAD")
        index = self._files.find(INDEX)
        if index is None:
            return _text_response(_NOT_BUILT, is_head=scope["method"] == "HEAD") if path == "/" else None
        if path != "/" and "text/html" not in headers.get("accept", ""):
            return None
        return _page_response(index, is_head=scope["method"] == "HEAD")


def _page_response(index: StaticFile, *, is_head: bool) -> Response:
    nonce = ids.random_bytes(16).hex()
    content = index.content.replace(_NONCE, nonce.encode())
    headers = {
        "cache-control": "no-cache",
        "content-type": _PAGE_TYPE,
        "content-security-policy": _POLICY.format(nonce=nonce),
    }
    return _response(200, content, headers, is_head=is_head)


def _file_response(file: StaticFile, headers: Mapping[str, str], *, is_head: bool) -> Response:
    is_compressed = file.compressed is not None and _accepts_gzip(headers.get("accept-encoding", ""))
    tag = f'"{file.tag}{"-gzip" if is_compressed else ""}"'
    fields = {
        "cache-control": "public, max-age=31536000, immutable" if file.is_hashed else "no-cache",
        "content-type": file.media_type,
        "etag": tag,
        "vary": "accept-encoding",
    }
    if file.media_type == _IMAGE_DOCUMENT:
        fields["content-security-policy"] = "default-src 'none'; frame-ancestors 'none'; sandbox"
    if _matches(headers.get("if-none-match", ""), tag):
        return _response(304, b"", fields, is_head=True)
    if is_compressed:
        fields["content-encoding"] = "gzip"
    return _response(200, (file.compressed or b"") if is_compressed else file.content, fields, is_head=is_head)


def _text_response(text: str, *, is_head: bool) -> Response:
    headers = {"cache-control": "no-store", "content-type": "text/plain; charset=utf-8"}
    return _response(200, text.encode(), headers, is_head=is_head)


def _response(status: int, content: bytes, headers: Mapping[str, str], *, is_head: bool) -> Response:
    length = {} if status == 304 else {"content-length": str(len(content))}
    return Response(b"" if is_head else content, status, {**_HEADERS, **headers, **length})


def _accepts_gzip(accepted: str) -> bool:
    """Return whether `Accept-Encoding` admits gzip (RFC 9110, 12.5.3)."""
    for part in accepted.lower().split(","):
        name, _, quality = part.replace(" ", "").partition(";q=")
        if name == "gzip":
            return not quality or bool(quality.strip("0."))
    return False


def _matches(if_none_match: str, tag: str) -> bool:
    tags = [each.strip().removeprefix("W/") for each in if_none_match.split(",")]
    return tag in tags or "*" in tags


def _fields(scope: Scope) -> Mapping[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in reversed(scope["headers"])}
