"""The docs: the built site below `/docs`.

The policy admits scripts and connections below `/docs` alone, and the description of the API: code of the site's
libraries shares the origin of the dashboard, but cannot read from the APIs with the reader's session.
"""

import re
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from roost.http.dashboard.static_files import (
    INDEX,
    NONCE,
    StaticSite,
    file_response,
    make_response,
    page_response,
    text_response,
)
from roost.web.url_rule import UrlFamily

BUILT_DOCS = Path(__file__).with_name("docs")
"""Where `make docs` leaves the site; absent until then."""
PREFIX = "/docs"
_NOT_FOUND = "/404.html"
_SEARCH_STYLE = "'sha256-NwSx/R2V/U4jnW0Tq5pQ53Y/rzPVJ4dqE7D6UTA/J1k='"  # which Zensical's search makes for its dialog
_POLICY = (
    "default-src 'none'; script-src {docs}; style-src {docs} {inline}; img-src {docs} data:; font-src {docs}; "
    "connect-src {docs} {api}; worker-src {docs}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HOST = re.compile(r"[\w.:\[\]-]+", re.ASCII)
_NOT_BUILT = """\
The docs are not built yet.

The first `make up` builds them in the background within some minutes; this page then shows them. Otherwise, in the
checkout that this server runs from: make docs
The same pages are in its folder docs.
"""


class DocsApp(StaticSite):
    family = UrlFamily.DOCS

    def _find_response(self, scope: Scope, headers: Headers) -> Response:
        """Return the page or the file at a path, or what to do."""
        path = scope["path"].removeprefix(PREFIX)
        if not self._files.is_built:
            return text_response(_NOT_BUILT, 404, refresh="5")
        if path.endswith("/"):
            file = self._files.find(f"{path.rstrip('/')}{INDEX}")
        elif self._files.find(f"{path}{INDEX}") is not None:
            return make_response(308, b"", {"location": f"{scope['path']}/"})
        else:
            file = self._files.find(path)
        status = 404 if file is None else 200
        if (shown := file or self._files.find(_NOT_FOUND)) is None:
            return text_response("There is no such page.\n", 404)
        if NONCE in shown.content:
            return page_response(shown, _policy(scope["scheme"], headers, "'nonce-{nonce}'"), status)
        return file_response(shown, headers, _policy(scope["scheme"], headers, _SEARCH_STYLE), status)


def _policy(scheme: str, headers: Headers, inline: str) -> str:
    """Return the policy of a response. inline: the source of styles inside the page.

    Sources with a path need the origin under which the browser knows the server.
    """
    host = headers.get("host", "")
    origin = f"{scheme}://{host}" if _HOST.fullmatch(host) else ""
    docs, api = (f"{origin}{PREFIX}/", f"{origin}/openapi") if origin else ("'none'", "'none'")
    return _POLICY.format(docs=docs, api=api, inline=inline)
