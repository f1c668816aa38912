"""The dashboard's pages and files.

A page is the same `index.html` at every path, with a nonce of its own for the styles that its libraries insert.
"""

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from roost.http.dashboard.static_files import INDEX, StaticSite, file_response, page_response, text_response
from roost.web.url_rule import UrlFamily

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
_NOT_BUILT = """\
Roost runs here, but its dashboard is not built yet.

The first `make up` builds it in the background within some minutes; this page then shows it. Otherwise, in the
checkout that this server runs from: make dashboard

The API works, and /openapi describes it. The command line needs no dashboard: roost --help
"""


class DashboardApp(StaticSite):
    family = UrlFamily.DASHBOARD

    def _find_response(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the page or the file at a path; None for a program that asks for neither."""
        path = scope["path"]
        file = None if path == INDEX else self._files.find(path)
        if file is not None:
            return file_response(file, headers)
        if path != "/" and "text/html" not in headers.get("accept", ""):
            return None
        index = self._files.find(INDEX)
        return text_response(_NOT_BUILT, refresh="5") if index is None else page_response(index, _POLICY)
