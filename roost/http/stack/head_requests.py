"""Answer HEAD wherever GET is answered (RFC 9110, 9.3.2)."""

from collections.abc import Sequence
from contextlib import suppress

from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from roost.web.errors import route_methods


class _HeadAnsweredError(Exception):
    """The response is complete without the rest of its body."""


class HeadMiddleware:
    """Middleware that turns HEAD into GET without the body, except where a route has a HEAD of its own."""

    def __init__(self, app: ASGIApp, routes: Sequence[BaseRoute]) -> None:
        self._app = app
        self._routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD" or "HEAD" in route_methods(self._routes, scope):
            await self._app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            if message["type"] == "http.response.body":
                await send({"type": "http.response.body", "body": b""})
                if message.get("more_body"):
                    raise _HeadAnsweredError  # the rest of the body may have no end
            else:
                await send(message)

        got = {**scope, "method": "GET"}
        try:
            with suppress(_HeadAnsweredError):
                await self._app(got, receive, send_head)
        finally:
            scope["route"] = got.get("route")  # for the access log
