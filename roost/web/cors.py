"""Pages of any origin may upload: a key in a header, or a signed address, is all that counts there, never a cookie."""

import re

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

_UPLOADS = re.compile(r"/v3/files(/[0-9a-f-]{36}(/[0-9a-f]+)?)?")
_TOLD = ("Location", "Upload-Offset", "Upload-Length", "Upload-Expires", "Tus-Resumable", "upload-cid", "X-Request-Id")


class CorsMiddleware:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._shared = CORSMiddleware(
            app,
            allow_origins=("*",),
            allow_methods=("POST", "HEAD", "PATCH", "DELETE", "OPTIONS"),
            allow_headers=("*",),
            expose_headers=_TOLD,
            max_age=86_400,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_upload = scope["type"] == "http" and _UPLOADS.fullmatch(scope["path"])
        await (self._shared if is_upload else self._app)(scope, receive, send)
