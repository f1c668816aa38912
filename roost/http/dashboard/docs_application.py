"""ASGI application of the docs: the built site below `/docs`; it passes every other request on.

The policy admits scripts and connections below `/docs` alone, and the description of the API: code of the site's
libraries shares the origin of the dashboard, but cannot read from the APIs with the reader's session.
"""

import re
from pathlib import Path

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from roost.core import ids
from roost.http.dashboard.static_files import INDEX, StaticFile, StaticFiles
from roost.http.dashboard.static_responses import file_response, header_fields, make_response, text_response
from roost.web.request_address import rule_of
from roost.web.url_rule import UrlFamily

BUILT_DOCS = Path(__file__).with_name("docs")
"""Where `make docs` leaves the site; absent until then."""
PREFIX = "/docs"
_NONCE = b"__NONCE__"
_NOT_FOUND = "/404.html"
_SEARCH_STYLE = "'sha256-NwSx/R2V/U4jnW0Tq5pQ53Y/rzPVJ4dqE7D6UTA/J1k='"  # which Zensical's search makes for its dialog
_POLICY = (
    "default-src 'none'; script-src {docs}; style-src {docs} {inline}; img-src {docs} data:; font-src {docs}; "
    "connect-src {docs} {api}; worker-src {docs}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HOST = re.compile(r"[\w.:\[\]-]+", re.ASCII)
_NOT_BUILT = """\
The docs are not built.

In the checkout that this server runs from: make docs. Then start the server again.
The same pages are in its folder docs.
"""


class DocsApp:
    def __init__(self, next_app: ASGIApp, files: StaticFiles) -> None:
        self._next_app = next_app
        self._files = files

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_own = scope["type"] == "http" and rule_of(scope).family is UrlFamily.DOCS
        response = self._find_response(scope) if is_own and scope["method"] in {"GET", "HEAD"} else None
        await (response or self._next_app)(scope, receive, send)

    def _find_response(self, scope: Scope) -> Response:
        """Return the page or the file at a path, or what to do."""
        path, is_head = scope["path"].removeprefix(PREFIX), scope["method"] == "HEAD"
        if not self._files.is_built:
            return text_response(_NOT_BUILT, is_head=is_head, status=404)
        if path.endswith("/"):
            file = self._files.find(f"{path.rstrip('/')}{INDEX}")
        elif self._files.find(f"{path}{INDEX}") is not None:
            return make_response(308, b"", {"location": f"{scope['path']}/"}, is_head=is_head)
        else:
            file = self._files.find(path)
        if file is not None:
            return _site_response(scope, file, status=200)
        if (page := self._files.find(_NOT_FOUND)) is not None:
            return _site_response(scope, page, status=404)
        return text_response("There is no such page.\n", is_head=is_head, status=404)


def _site_response(scope: Scope, file: StaticFile, *, status: int) -> Response:
    headers, is_head = header_fields(scope), scope["method"] == "HEAD"
    if _NONCE not in file.content:
        return file_response(file, headers, is_head=is_head, policy=_policy(scope), status=status)
    nonce = ids.random_bytes(16).hex()
    fields = {
        "cache-control": "no-cache",
        "content-type": file.media_type,
        "content-security-policy": _policy(scope, f"'nonce-{nonce}'"),
    }
    return make_response(status, file.content.replace(_NONCE, nonce.encode()), fields, is_head=is_head)


def _policy(scope: Scope, inline: str = _SEARCH_STYLE) -> str:
    """Return the policy of a response. inline: the source of styles inside the page.

    Sources with a path need the origin under which the browser knows the server.
    """
    host = header_fields(scope).get("host", "")
    origin = f"{scope['scheme']}://{host}" if _HOST.fullmatch(host) else ""
    docs, api = (f"{origin}{PREFIX}/", f"{origin}/openapi") if origin else ("'none'", "'none'")
    return _POLICY.format(docs=docs, api=api, inline=inline)
