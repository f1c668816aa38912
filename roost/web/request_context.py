"""Add a request id and security headers to each response, and write the access log.

Unexpected exceptions are logged with the request id and answered with a plain 500. Requests that a stop of the server
cuts off get 503.
"""

import asyncio
from urllib.parse import quote

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from roost.core import clock, log
from roost.core.actor import SERVER, acting_as
from roost.core.problem import Problem, ServerStopping
from roost.web import errors
from roost.web.access_log import AccessRecord, Observe, request_id, write_access_log
from roost.web.url_rule import UrlFamily, address_of, rule_of

_log = log.get_logger(__name__)
_NO_SNIFF = (b"x-content-type-options", b"nosniff")
_HSTS, _YEAR = b"strict-transport-security", b"max-age=31536000"  # browsers ignore it without HTTPS
_SECURITY_HEADERS = ((_HSTS, _YEAR + b"; includeSubDomains"), _NO_SNIFF)
_TENANT_HEADERS = ((_HSTS, _YEAR), _NO_SNIFF)


def security_headers(scope: Scope) -> tuple[tuple[bytes, bytes], ...]:
    """Return the headers of every response. Only a name of the server speaks for the names below it."""
    return _SECURITY_HEADERS if address_of(scope).host.domain is None else _TENANT_HEADERS


class RequestContextMiddleware:
    def __init__(self, app: ASGIApp, observe: Observe = write_access_log) -> None:
        self._app = app
        self._observe = observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        state = _RequestState(scope, receive, send)
        token = log.request_id.set(state.request_id)
        try:
            with acting_as(SERVER):  # a connection's next request begins in the context of the one before
                await self._app(scope, state.receive, state.send)
        except ClientDisconnect:
            _log.debug("request.abandoned", path=state.path)
        except asyncio.CancelledError:  # the server stops, and this request outlasted the time for it
            _log.info("request.cut_off", method=state.method, path=state.path)
            if state.status:
                raise
            response = errors.problem_response(rule_of(scope).errors, ServerStopping())
            await response(scope, receive, state.send)
        except Exception as error:  # noqa: BLE001 - it logs any exception and answers
            if state.status and isinstance(error.__cause__, Problem):  # too late for an error: the response is cut off
                _log.info("response.aborted", path=state.path, reason=error.__cause__.message)
            else:
                _log.exception("request.failed", method=state.method, path=state.path)
            if not state.status:
                response = errors.error_response(scope, 500, "Internal error")
                await response(scope, receive, state.send)
        finally:
            log.request_id.reset(token)
            self._observe(state.record())


class _RequestState:
    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._began = clock.monotonic_seconds()
        self._received = self._sent = 0
        self.status = 0
        self.request_id = request_id(
            next((value.decode("latin-1") for name, value in scope["headers"] if name == b"x-request-id"), None)
        )

    @property
    def method(self) -> str:
        return self._scope.get("method", "WEBSOCKET")

    @property
    def path(self) -> str:
        """The route's path, else the raw path, because a decoded one may contain control characters."""
        target: bytes = self._scope.get("raw_path") or quote(self._scope["path"]).encode()
        return getattr(self._scope.get("route"), "path", None) or target.decode("latin-1")

    async def receive(self) -> Message:
        message = await self._receive()
        self._received += len(message.get("body") or message.get("bytes") or message.get("text") or b"")
        return message

    async def send(self, message: Message) -> None:
        kind = message["type"].removeprefix("websocket.")
        if kind == "close" and not self.status:  # the router's answer to a WebSocket at an unknown path
            refusal = errors.error_response(self._scope, 404, "Not found")
            await refusal(self._scope, self._receive, self.send)
            return
        if kind in {"http.response.start", "accept"}:
            self.status = message.get("status", 101)
            own = (b"x-request-id", self.request_id.encode())
            message["headers"] = [*message.get("headers", ()), *security_headers(self._scope), own]
            address = address_of(self._scope)
            MutableHeaders(scope=message).update(address.rule.response_headers)
            if address.host.session_cookie is not None:
                self._protect_session(MutableHeaders(scope=message))
            if address.rule.family is UrlFamily.STORAGE:
                self._add_explicit_headers(MutableHeaders(scope=message))
        else:
            self._sent += len(message.get("body") or message.get("bytes") or message.get("text") or b"")
        await self._send(message)

    @staticmethod
    def _protect_session(headers: MutableHeaders) -> None:
        """Set defaults where browsers have sessions: no response is stored, framed, or a page that runs something.

        Caches may store responses to cookies (RFC 9111, 3.5), and browsers show them after a sign-out.
        """
        headers.setdefault("Cache-Control", "no-store")
        headers.setdefault("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")

    def _add_explicit_headers(self, headers: MutableHeaders) -> None:
        """Set the default headers in the contract of the storage API."""
        if headers.get("content-type") == "application/json":
            headers["Content-Type"] = "application/json; charset=utf-8"
        if self._is_kept_open():
            headers.setdefault("Connection", "keep-alive")

    def _is_kept_open(self) -> bool:
        """Return whether the connection stays open; the server itself announces its end."""
        values = [value.lower() for name, value in self._scope["headers"] if name == b"connection"]
        return self._scope.get("http_version") != "1.0" and not any(b"close" in value for value in values)

    def record(self) -> AccessRecord:
        return AccessRecord(
            method=self.method,
            path=self.path,
            status=self.status or errors.CLIENT_LEFT,
            seconds=clock.monotonic_seconds() - self._began,
            received=self._received,
            sent=self._sent,
            request_id=self.request_id,
            agent_id=address_of(self._scope).host.agent_id,
        )
