"""CORS: pages of any origin may upload with a key in a header or a signed URL; cookies never count."""

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from roost.web.rate_limit_fields import FIELD_NAMES
from roost.web.url_rule import rule_of

_EXPOSED = (
    "Location",
    "Upload-Offset",
    "Upload-Length",
    "Upload-Defer-Length",
    "Upload-Metadata",
    "Upload-Expires",
    "Tus-Resumable",
    "Tus-Version",
    "Tus-Extension",
    "upload-cid",
    "X-Request-Id",
    "X-Error-Code",
    "X-Error-Detail",
    "X-Error-Field",
    "Retry-After",
    *FIELD_NAMES,
)


class CorsMiddleware:
    """Adds CORS headers where the URL map allows them."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._with_cors = CORSMiddleware(
            app,
            allow_origins=("*",),
            allow_methods=("POST", "HEAD", "PATCH", "DELETE", "OPTIONS"),
            allow_headers=("*",),
            expose_headers=_EXPOSED,
            max_age=86_400,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        allowed = scope["type"] == "http" and rule_of(scope).allows_cors
        await (self._with_cors if allowed else self._app)(scope, receive, send)
