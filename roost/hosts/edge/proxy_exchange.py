"""One request carried to an agent's gateway, and its response carried back; after a switch to WebSocket, a tunnel.

The client's protocol drives one side (`QueuedRequest`), the gateway's connection the other (`ResponseHandler`). Nothing
is kept beyond one read: while one side does not accept data, the other is not read. Framing is written anew.
"""

import asyncio
from http import HTTPStatus

from roost.core import log
from roost.core.problem import Problem
from roost.hosts.edge import response_head
from roost.hosts.edge.gateway_connection import GatewayConnection, LiveConnections
from roost.hosts.edge.guarded_http import GuardedHttpProtocol, QueuedRequest
from roost.hosts.edge.proxy_request import ProxyRequest
from roost.hosts.edge.request_head import Headers, forward_request
from roost.hosts.edge.response_parser import InvalidResponse
from roost.web import errors
from roost.web.access_log import AccessRecord
from roost.web.url_rule import ErrorForm

_log = log.get_logger(__name__)
_MAX_HELD = 64 * 1024
_RECENT = 2.0  # a request that may not be repeated takes no connection that the gateway may be about to close


class ProxyExchange(QueuedRequest):
    """One request under way."""

    def __init__(
        self, client: GuardedHttpProtocol, live: LiveConnections, request: ProxyRequest, *, keep_alive: bool
    ) -> None:
        super().__init__(keep_alive=keep_alive)
        self.agent_id = request.agent_id
        self._client, self._live, self._request = client, live, request
        self._is_head = request.head.method == b"HEAD"
        self._began = client.loop.time()
        self._status = self._received = self._sent = 0
        self._deadline = 0.0
        self._held: list[bytes] = []  # of the request, until there is a connection to the gateway
        self._out: list[bytes] = []  # of the response, until the current read is parsed
        self._task: asyncio.Task[None] | None = None
        self._gateway: GatewayConnection | None = None
        self._aborted: tuple[HTTPStatus, str] | None = None
        self._is_uploaded = self._is_admitted = self._is_retry = False
        self._has_begun = self._is_chunked = False  # the response
        self._is_tunnel = self._client_ended = self._gateway_ended = False

    # As a QueuedRequest: the client's side

    def start(self) -> None:
        self._began = self._client.loop.time()
        self._live.add(self)
        self._touch()
        if self._aborted is not None:
            self._answer_error(*self._aborted)
        else:
            self._task = self._client.loop.create_task(self._open())

    def receive_body(self, data: bytes) -> None:
        self._received += len(data)
        part = b"%x\r\n%b\r\n" % (len(data), data) if self._request.head.chunked else data
        if self._gateway is not None and (self._is_tunnel or not self._request.head.websocket):
            self._gateway.transport.write(part)
            self._touch()
        else:
            self._held.append(part)
            if self._received > _MAX_HELD or self._request.head.websocket:
                self._client.flow.pause_reading()

    def end_body(self) -> None:
        self._is_uploaded = True
        if not self._request.head.chunked:
            return
        if self._gateway is None:
            self._held.append(b"0\r\n\r\n")
        else:
            self._gateway.transport.write(b"0\r\n\r\n")
            self._touch()

    def abort_request(self, status: HTTPStatus, message: str) -> None:
        self.keep_alive = False
        if self.response_complete or self._has_begun:
            self._finish()
        elif self._task is None:
            self._aborted = status, message
        else:
            self._answer_error(status, message)

    def half_close(self) -> bool:
        if self._is_tunnel:
            self._client_ended = True
            return not self._gateway_ended and self._gateway is not None and _end(self._gateway.transport)
        self.keep_alive = False
        return self._is_uploaded and not self.response_complete and not self._request.head.websocket

    def disconnect(self) -> None:
        if self.response_complete:
            return
        self._status = self._status or errors.CLIENT_LEFT
        if self._is_tunnel and self._gateway is not None:
            self._gateway.close()
            self._gateway = None
        self._leave()

    def pause_response(self) -> None:
        if self._gateway is not None:
            self._gateway.set_reading(wanted=False)

    def resume_response(self) -> None:
        if self._gateway is not None:
            self._gateway.set_reading(wanted=True)

    # Time, and the end of an agent

    def drop(self) -> None:
        self._client.transport.abort()
        if not self.response_complete:
            self._status = self._status or errors.CLIENT_LEFT
            self._leave()

    def check_time(self, now: float) -> None:
        bounds = self._live.gate.bounds
        late = now - self._began - bounds.body_grace
        if now > self._deadline and self._has_begun:
            self.drop()
        elif now > self._deadline and not self._waits_for_client():
            self._answer_error(HTTPStatus.GATEWAY_TIMEOUT, "The agent took too long to answer")
        elif now > self._deadline or (
            late * bounds.body_rate - self._received > 0 and not self._has_begun and self._waits_for_client()
        ):
            self._answer_error(HTTPStatus.REQUEST_TIMEOUT, "Request timeout")

    def _waits_for_client(self) -> bool:
        return not self._is_uploaded and self._gateway is not None and not self._gateway.is_full

    def _touch(self) -> None:
        """Start the time for the next progress."""
        bounds = self._live.gate.bounds
        if self._has_begun:
            seconds = bounds.idle
        else:
            seconds = bounds.body_idle if self._waits_for_client() else bounds.response_head
        self._deadline = self._client.loop.time() + seconds

    # To the gateway

    async def _open(self) -> None:
        request, gate = self._request, self._live.gate
        try:
            if not self._is_admitted:
                auth = request.auth_request()
                await gate.admit(auth)
                self._is_admitted = True
                if (redirect := request.sign_in_redirect(auth, close=not self.keep_alive)) is not None:
                    self._answer(HTTPStatus.SEE_OTHER, redirect)
                    return
            max_idle = 0.0 if self._is_retry else gate.bounds.spare if request.is_repeatable else _RECENT
            gateway = await self._live.connect(self.agent_id, max_idle=max_idle)
        except Problem as problem:
            response = errors.problem_response(ErrorForm.AGENTS, problem)
            body = response_head.response_bytes(response, request.request_id, head=self._is_head)
            self._answer(response.status_code, body)
        except OSError:
            self._answer_error(HTTPStatus.BAD_GATEWAY, "The agent does not answer")
        except Exception:  # noqa: BLE001 - the edge of a request: it logs and answers
            _log.exception("request.failed", request_id=request.request_id)
            self._answer_error(HTTPStatus.INTERNAL_SERVER_ERROR, "Internal error")
        else:
            self._send(gateway)

    def _send(self, gateway: GatewayConnection) -> None:
        request, client = self._request, self._client
        self._gateway = gateway
        scheme = self._live.gate.addresses.scheme
        parts = [
            forward_request(
                request.head,
                client=request.client,
                scheme=scheme,
                request_id=request.request_id,
                credential=gateway.credential,
            )
        ]
        if not request.head.websocket:
            if request.head.expects and not self._held and not self._is_uploaded:
                client.transport.write(response_head.CONTINUE)
            parts += self._held
            self._held = []
            if not self._is_uploaded:
                client.flow.resume_reading()
        gateway.send_request(self, b"".join(parts), bodiless=self._is_head)
        if client.flow.write_paused:
            gateway.set_reading(wanted=False)
        self._touch()

    # As a ResponseHandler: the gateway's side

    def informational(self, status: int, headers: Headers) -> None:
        if status != HTTPStatus.CONTINUE and self._request.head.version == "1.1":
            self._out.append(response_head.forward_response(status, headers, self._request.host, b""))

    def switch(self, headers: Headers) -> None:
        if not self._request.head.websocket:
            raise InvalidResponse("a switch of protocols without a request for it")
        self._begin(HTTPStatus.SWITCHING_PROTOCOLS, headers, b"connection: Upgrade\r\nupgrade: websocket\r\n")

    def begin_response(self, status: int, headers: Headers, length: int | None, *, has_body: bool) -> None:
        self._is_chunked = has_body and length is None and self._request.head.version == "1.1"
        if has_body and length is None and not self._is_chunked:
            self.keep_alive = False
        framing = b"" if self.keep_alive else response_head.CLOSE
        if self._is_chunked:
            framing += b"transfer-encoding: chunked\r\n"
        elif length is not None and status != HTTPStatus.NO_CONTENT:
            framing += b"content-length: %d\r\n" % length
        self._begin(status, headers, framing)

    def body(self, data: bytes) -> None:
        if self._is_chunked:
            self._out += (b"%x\r\n" % len(data), data, b"\r\n")
        else:
            self._out.append(data)

    def flush(self) -> None:
        self._touch()
        out, self._out = self._out, []
        if out:
            self._sent += sum(map(len, out))
            self._client.transport.writelines(out)

    def finish_response(self, *, reusable: bool) -> None:
        if self._is_chunked:
            self._client.transport.write(b"0\r\n\r\n")
        gateway, self._gateway = self._gateway, None
        if gateway is not None and reusable and self._is_uploaded:
            self._live.reuse(gateway)
        elif gateway is not None:
            gateway.drop()
        self._finish()

    def open_tunnel(self, rest: bytes) -> None:
        """Carry bytes both ways until both sides have ended."""
        assert self._gateway is not None
        self._is_tunnel, self._is_uploaded = True, False
        self._gateway.transport.write(b"".join(self._held))
        self._held = []
        self._client.flow.resume_reading()
        self.body(rest)
        self.flush()

    def end_response(self) -> bool:
        self._gateway_ended = True
        return not self._client_ended and _end(self._client.transport)

    def fail_response(self, *, retry: bool) -> None:
        self._gateway = None
        if self._has_begun:  # the client sees by the connection's end that the response is incomplete
            self.keep_alive = False
            self._finish()
        elif retry and self._request.is_repeatable and not self._is_retry:
            self._is_retry = True
            self._task = self._client.loop.create_task(self._open())
        else:
            self._answer_error(HTTPStatus.BAD_GATEWAY, "The agent gave no usable answer")

    def pause_request(self) -> None:
        if not self._is_uploaded:
            self._client.flow.pause_reading()
        self._touch()

    def resume_request(self) -> None:
        if not self._is_uploaded:
            self._client.flow.resume_reading()
        self._touch()

    # The end

    def _begin(self, status: int, headers: Headers, framing: bytes) -> None:
        self._has_begun, self._status = True, status
        own_lines = b"x-request-id: %b\r\n%b" % (self._request.request_id.encode(), framing)
        self._out.append(response_head.forward_response(status, headers, self._request.host, own_lines))

    def _answer_error(self, status: HTTPStatus, message: str) -> None:
        request_id, close = self._request.request_id, not self.keep_alive
        self._answer(status, response_head.error_bytes(status, message, request_id, close=close, head=self._is_head))

    def _answer(self, status: int, response: bytes) -> None:
        if not self.response_complete:
            self._has_begun, self._status = True, status
            self._sent += len(response)
            self._client.transport.write(response)
            self._finish()

    def _finish(self) -> None:
        """End the exchange, and let the connection's next request have its turn."""
        if not self.response_complete:
            self._leave()
            if self.keep_alive:
                self._client.on_response_complete()
                return
        self._client.lingering_close()

    def _leave(self) -> None:
        self.response_complete = True
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
        if self._gateway is not None:
            self._gateway.drop()
            self._gateway = None
        self._live.remove(self)
        request = self._request
        self._live.gate.observe(
            AccessRecord(
                agent_id=self.agent_id,
                method=request.head.method.decode(),
                path=request.path,
                status=self._status,
                seconds=self._client.loop.time() - self._began,
                received=self._received,
                sent=self._sent,
                request_id=request.request_id,
            )
        )


def _end(transport: asyncio.WriteTransport) -> bool:
    """Tell one side that the other sends no more; return False where only closing can say that."""
    if transport.is_closing() or not transport.can_write_eof():
        return False
    transport.write_eof()
    return True
