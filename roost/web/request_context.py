"""What every response carries and every request leaves behind: an id, the security headers, a line of the access log.

An exception that nobody expected ends here: it is logged with the request's id and answered with a plain 500.
"""

from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from roost.core import clock, log
from roost.core.problem import Problem
from roost.web import errors
from roost.web.access_log import AccessRecord, Observe, write_access_log
from roost.web.request_id import request_id

_log = log.get_logger(__name__)
_HEADERS = (
    (b"strict-transport-security", b"max-age=31536000; includeSubDomains"),  # browsers heed it over HTTPS only
    (b"x-content-type-options", b"nosniff"),
)


class RequestContextMiddleware:
    def __init__(self, app: ASGIApp, observe: Observe = write_access_log) -> None:
        self._app = app
        self._observe = observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        letter = _RequestState(scope, receive, send)
        token = log.request_id.set(letter.request_id)
        try:
            await self._app(scope, letter.receive, letter.send)
        except ClientDisconnect:
            _log.debug("the client left before its body was here", path=letter.path)
        except Exception as error:  # noqa: BLE001 - the edge of a request: it logs and answers
            if letter.status and isinstance(error.__cause__, Problem):  # too late to tell: the client sees it break off
                _log.info("answer cut off", path=letter.path, reason=error.__cause__.message)
            else:
                _log.exception("unexpected failure", method=letter.method, path=letter.path)
            if not letter.status:
                response = JSONResponse(errors.body(scope["path"], 500, "Internal error"), 500)
                await response(scope, receive, letter.send)
        finally:
            log.request_id.reset(token)
            self._observe(letter.passage())


class _RequestState:
    """One request on its way through."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._began = clock.monotonic_seconds()
        self._received = self._sent = 0
        self.status = 0
        self.request_id = request_id(next((value for name, value in scope["headers"] if name == b"x-request-id"), None))

    @property
    def method(self) -> str:
        return self._scope.get("method", "WEBSOCKET")

    @property
    def path(self) -> str:
        """The path of the route, which the router leaves in the scope; of no route, what was asked, as it was sent:
        decoded, it could hold what steers a terminal.
        """
        asked: bytes = self._scope.get("raw_path") or quote(self._scope["path"]).encode()
        return getattr(self._scope.get("route"), "path", None) or asked.decode("latin-1")

    async def receive(self) -> Message:
        message = await self._receive()
        self._received += len(message.get("body") or message.get("bytes") or message.get("text") or b"")
        return message

    async def send(self, message: Message) -> None:
        kind = message["type"].removeprefix("websocket.")
        if kind == "close" and not self.status:  # the router's word for a WebSocket at a path without one
            refusal = JSONResponse(errors.body(self._scope["path"], 404, "Not found"), 404)
            await refusal(self._scope, self._receive, self.send)
            return
        if kind in {"http.response.start", "accept"}:
            self.status = message.get("status", 101)
            own = (b"x-request-id", self.request_id.encode())
            message["headers"] = [*message.get("headers", ()), *_HEADERS, own]
            if self._is_storage():
                self._spell_out(MutableHeaders(scope=message))
        else:
            self._sent += len(message.get("body") or message.get("bytes") or message.get("text") or b"")
        await self._send(message)

    def _spell_out(self, headers: MutableHeaders) -> None:
        if headers.get("content-type") == "application/json":
            headers["Content-Type"] = "application/json; charset=utf-8"
        if self._is_kept_open():
            headers.setdefault("Connection", "keep-alive")

    def _is_storage(self) -> bool:
        """Whether it is the storage API that answers, whose contract lists headers which go without saying elsewhere.
        On agents' addresses all paths are their engines'.
        """
        state = self._scope.get("state", {})
        return self._scope["path"].startswith("/v3/") and not (state.get("agent_host") or state.get("gateway_host"))

    def _is_kept_open(self) -> bool:
        """Where it is not, the server says so itself."""
        asked = [value.lower() for name, value in self._scope["headers"] if name == b"connection"]
        return self._scope.get("http_version") != "1.0" and not any(b"close" in value for value in asked)

    def passage(self) -> AccessRecord:
        return AccessRecord(
            method=self.method,
            path=self.path,
            status=self.status or errors.CLIENT_LEFT,
            seconds=clock.monotonic_seconds() - self._began,
            received=self._received,
            sent=self._sent,
            request_id=self.request_id,
            agent_id=self._scope.get("state", {}).get("agent_host"),
        )
