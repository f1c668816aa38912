"""ASGI application of the dashboard's pages and files; it passes every other request on.

A page is the same `index.html` at every path, with a nonce of its own for the styles that its libraries insert.
"""

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from roost.core import ids
from roost.http.dashboard.static_files import INDEX, StaticFile, StaticFiles
from roost.http.dashboard.static_responses import file_response, header_fields, make_response, text_response
from roost.web.request_address import rule_of
from roost.web.url_rule import UrlFamily

_NONCE = b"__NONCE__"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
_PAGE_TYPE = "text/html; charset=utf-8"
_NOT_BUILT = """\
Roost runs here, but its dashboard is not built.

In the checkout that this server runs from: make dashboard. Then start the server again.

The API works, and /openapi describes it. The command line needs no dashboard: roost --help
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
        path, headers = scope["path"], header_fields(scope)
        file = None if path == INDEX else self._files.find(path)
        if file is not None:
            return file_response(file, headers, is_head=scope["method"] == "HEAD")
        if path != "/" and "text/html" not in headers.get("accept", ""):
            return None
        if (index := self._files.find(INDEX)) is None:
            return text_response(_NOT_BUILT, is_head=scope["method"] == "HEAD")
        return _page_response(index, is_head=scope["method"] == "HEAD")


def _page_response(index: StaticFile, *, is_head: bool) -> Response:
    nonce = ids.random_bytes(16).hex()
    content = index.content.replace(_NONCE, nonce.encode())
    headers = {
        "cache-control": "no-cache",
        "content-type": _PAGE_TYPE,
        "content-security-policy": _POLICY.format(nonce=nonce),
    }
    return make_response(200, content, headers, is_head=is_head)
