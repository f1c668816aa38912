"""One request carried to an agent's gateway, and its response carried back; after a switch to WebSocket, a tunnel.

The client's connection drives one side (`Exchange`), the gateway's connection the other (`ResponseHandler`). At most
one read is kept: while one side does not accept data, the other is not read. The framing of both bodies is rewritten.
"""

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus

from starlette.responses import Response

from roost.core import log
from roost.core.problem import Problem
from roost.core.rate_limit import RateLimitExceeded
from roost.http.edge import response_head
from roost.http.edge.dependencies import GatewayUnreachable
from roost.http.edge.gateway_connection import GatewayConnection, InvalidResponse
from roost.http.edge.gateway_pool import GatewayPool
from roost.http.edge.proxy_request import ProxyRequest
from roost.http.edge.upstream import find_upstream
from roost.http.server.http_connection import HttpConnection
from roost.http.server.request_head import Headers, forward_request
from roost.http.stack.rate_limits import RequestUsage
from roost.identity.caller import Caller
from roost.warden_client.errors import DialRefused
from roost.web import errors
from roost.web.access_log import AccessRecord
from roost.web.rate_limit_fields import FIELD_NAMES

_log = log.get_logger(__name__)
_RATE_LIMIT_FIELDS = frozenset(name.lower().encode() for name in FIELD_NAMES)
_MAX_HELD = 64 * 1024
NOTHING_LISTENS = (
    "Nothing answers on port {port} of this agent. Start a program that listens there, for instance by the script "
    "`start` of its manifest.json."
)
_NO_CONTENT = int(HTTPStatus.NO_CONTENT)
_CONTROL_FRAME = 0x08
"""Set in the first byte of a WebSocket frame that is no message (RFC 6455, section 5.2); most reads begin with one."""
_RECENT = 2.0  # a request that may not be repeated takes no connection that the gateway may be about to close


class ProxyExchange:
    """One request under way."""

    def __init__(self, client: HttpConnection, pool: GatewayPool, request: ProxyRequest, *, keep_alive: bool) -> None:
        self._client, self._pool, self._request = client, pool, request
        self._limits = pool.dependencies.limits
        self._began = 0.0
        self._status = self._received = self._sent = 0
        self._held: list[bytes] = []  # of the request, until there is a connection to the gateway
        self._out: list[bytes] = []  # of the response, until the current read is parsed
        self._task: asyncio.Task[None] | None = None
        self._gateway: GatewayConnection | None = None
        self._is_uploaded = self._is_retry = self._is_tunnel = self._is_over = False
        self._has_begun = self._is_chunked = False  # the response
        self._keep_alive = keep_alive
        self._usage: RequestUsage | None = None

    # As an Exchange: the client's side

    def start(self) -> None:
        self._began = self._client.loop.time()
        upstream = self._request.upstream
        if upstream.source is not None:
            self._pool.add_routed(upstream.source, self)
        if not upstream.is_protected:
            self._count(None)
        elif (caller := self._pool.dependencies.recall(self._request.auth)) is not None:
            self._count(caller)
        else:
            self._run(self._admit)

    def receive_body(self, data: bytes) -> None:
        self._received += len(data)
        if self._usage is not None:
            self._usage.count_bytes(len(data))
        if self._is_tunnel and not data[0] & _CONTROL_FRAME:  # pongs of an idle page do not count
            self._pool.dependencies.record_use(self._request.agent_id)
        self._write_request(b"%x\r\n%b\r\n" % (len(data), data) if self._request.head.headers.chunked else data)

    def end_body(self) -> None:
        self._is_uploaded = not self._request.head.websocket
        if self._request.head.headers.chunked:
            self._write_request(b"0\r\n\r\n")

    def disable_keep_alive(self) -> None:
        self._keep_alive = False

    def disconnect(self) -> bool:
        has_begun = self._has_begun
        if not self._is_over:
            self._status = self._status or errors.CLIENT_LEFT
            if self._is_tunnel and self._gateway is not None:
                self._gateway.close()
                self._gateway = None
            self._leave()
        return has_begun

    def pause_response(self) -> None:
        if self._gateway is not None:
            self._gateway.set_reading(wanted=False)

    def resume_response(self) -> None:
        if self._gateway is not None:
            self._gateway.set_reading(wanted=True)

    def check_time(self) -> None:
        if self._has_begun:
            self.drop()
        elif self._waits_for_client():
            self._answer_error(HTTPStatus.REQUEST_TIMEOUT, "Request timeout")
        else:
            self._answer_error(HTTPStatus.GATEWAY_TIMEOUT, "The agent took too long to answer")

    # Time

    def _waits_for_client(self) -> bool:
        return not self._is_uploaded and self._gateway is not None and not self._gateway.is_full

    def _touch(self) -> None:
        """Start the time for the next progress; a slow upload has its time at `body_rate`."""
        limits = self._limits
        if self._has_begun:
            seconds = limits.idle
        elif self._waits_for_client():
            left = self._began + limits.body_grace + self._received / limits.body_rate - self._client.loop.time()
            seconds = min(limits.body_idle, left)
        else:
            seconds = limits.response_head
        self._client.set_deadline(seconds)

    # To the gateway

    def _run(self, steps: Callable[[], Awaitable[None]]) -> None:
        self._touch()
        self._task = self._client.loop.create_task(self._answer_problems(steps))

    async def _answer_problems(self, steps: Callable[[], Awaitable[None]]) -> None:
        try:
            await steps()  # called here: a task that is cancelled before its first step calls nothing
        except Problem as problem:
            self._answer_problem(problem)
        except OSError:
            self._answer_error(HTTPStatus.BAD_GATEWAY, "The agent does not answer")
        except Exception:  # noqa: BLE001 - the edge of a request: it logs and answers
            _log.exception("request.failed", request_id=self._request.request_id)
            self._answer_error(HTTPStatus.INTERNAL_SERVER_ERROR, "Internal error")

    async def _admit(self) -> None:
        self._count(await self._pool.dependencies.admit(self._request.auth))

    def _count(self, caller: Caller | None) -> None:
        """Count the request on its caller, else on its client, and on its host; send it unless that is too much."""
        auth = self._request.auth
        if auth.limited_client is not None:
            key = auth.limited_client if caller is None else caller.token_digest
            try:
                self._usage = self._pool.dependencies.rate_limits.start_request(key, auth.origin)
            except RateLimitExceeded as exceeded:
                self._answer_problem(exceeded)
                return
            self._usage.count_bytes(self._received)
        self._connect()

    def _connect(self) -> None:
        """Send the admitted request on an idle connection, else on a new one."""
        request = self._request
        if (redirect := request.sign_in_redirect(close=not self._keep_alive)) is not None:
            self._answer(HTTPStatus.SEE_OTHER, redirect)
            return
        max_idle = 0.0 if self._is_retry else self._limits.spare if request.is_repeatable else _RECENT
        if (gateway := self._pool.take_idle(request.upstream, self._client.loop.time() - max_idle)) is not None:
            self._send(gateway)
        else:
            self._run(self._dial)

    async def _dial(self) -> None:
        try:
            gateway = await self._pool.dial(self._request.upstream, self)
        except (DialRefused, GatewayUnreachable):
            if self._request.upstream.port is None:
                raise
            self._answer_error(HTTPStatus.BAD_GATEWAY, NOTHING_LISTENS.format(port=self._request.upstream.port))
        else:
            self._send(gateway)

    def _send(self, gateway: GatewayConnection) -> None:
        request, client = self._request, self._client
        self._gateway = gateway
        self._pool.dependencies.record_use(request.agent_id)
        parts = [
            forward_request(
                request.head,
                client=request.auth.peer,
                scheme=self._pool.dependencies.addresses.scheme,
                request_id=request.request_id,
                credential=gateway.credential,
                prefix=request.upstream.prefix,
                is_open=not request.upstream.is_protected,
            )
        ]
        if not request.head.websocket:  # early data of a tunnel waits for it
            if request.head.headers.expects and not self._held and not self._is_uploaded:
                client.writer.write(client.transport, response_head.CONTINUE)
            parts += self._held
            self._held = []
            if not self._is_uploaded:
                client.flow.resume_reading()
        gateway.send_request(self, b"".join(parts), bodiless=request.is_head)
        if client.flow.write_paused:
            gateway.set_reading(wanted=False)
        self._touch()

    def _write_request(self, part: bytes) -> None:
        if self._gateway is not None and (self._is_tunnel or not self._request.head.websocket):
            self._gateway.write(part)
            self._touch()
        else:
            self._held.append(part)
            if self._received > _MAX_HELD or self._request.head.websocket:
                self._client.flow.pause_reading()

    # As a ResponseHandler: the gateway's side

    def begin_response(self, status: int, headers: Headers, length: int | None, *, has_body: bool) -> None:
        self._is_chunked = has_body and length is None and self._request.head.headers.version == "1.1"
        if has_body and length is None and not self._is_chunked:
            self._keep_alive = False
        framing = b"" if self._keep_alive else response_head.CLOSE
        if self._is_chunked:
            framing += b"transfer-encoding: chunked\r\n"
        elif length is not None and status != _NO_CONTENT:
            framing += b"content-length: %d\r\n" % length
        self._begin(status, headers, framing)

    def forward_informational(self, status: int, headers: Headers) -> None:
        if status != HTTPStatus.CONTINUE and self._request.head.headers.version == "1.1":
            self._out.append(self._forward_head(status, headers, b""))

    def begin_tunnel(self, headers: Headers) -> None:
        """Carry bytes both ways until one side ends."""
        if not self._request.head.websocket or self._gateway is None:
            raise InvalidResponse("a switch of protocols without a request for it")
        self._is_tunnel = True
        self._begin(HTTPStatus.SWITCHING_PROTOCOLS, headers, b"connection: Upgrade\r\nupgrade: websocket\r\n")
        self._gateway.write(b"".join(self._held))
        self._held = []
        self._client.flow.resume_reading()

    def write_body(self, data: bytes) -> None:
        if self._is_chunked:
            self._out += (b"%x\r\n" % len(data), data, b"\r\n")
        else:
            self._out.append(data)

    def flush_response(self) -> None:
        if self._has_begun or self._out:  # a part of a head is no progress: it could come byte by byte
            self._touch()
        self._write_response()

    def finish_response(self, *, reusable: bool) -> None:
        if self._is_chunked:
            self._out.append(b"0\r\n\r\n")
        self._write_response()
        if reusable and self._is_uploaded and self._gateway is not None:
            self._pool.put_back(self._gateway, self._client.loop.time())
            self._gateway = None
        self._finish()

    def fail_response(self, *, retry: bool) -> None:
        self._gateway = None
        if self._has_begun and self._sent:  # the client sees by the connection's end that the response is incomplete
            self._keep_alive = False
            self._finish()
        elif retry and self._request.is_repeatable and not self._is_retry:
            self._is_retry = True
            self._connect()
        else:
            self._out.clear()
            self._answer_error(HTTPStatus.BAD_GATEWAY, "The agent gave no usable answer")

    def pause_request(self) -> None:
        if not self._is_uploaded:
            self._client.flow.pause_reading()
        self._touch()

    def resume_request(self) -> None:
        if not self._is_uploaded:
            self._client.flow.resume_reading()
        self._touch()

    def is_current(self) -> bool:
        dependencies, request = self._pool.dependencies, self._request
        address = dependencies.addresses.parse(request.head.headers.host, self._client.local_port)
        if address is None or address.agent_id is None:
            return False
        try:
            return find_upstream(dependencies.find_route, address, request.path.encode()) == request.upstream
        except Problem:
            return False

    def drop(self) -> None:
        self._client.transport.abort()
        self.disconnect()

    def _write_response(self) -> None:
        if self._out:
            data = b"".join(self._out)
            self._out.clear()
            self._sent += len(data)
            if self._usage is not None:
                self._usage.count_bytes(len(data))
            self._client.writer.write(self._client.transport, data)

    # The end

    def _begin(self, status: int, headers: Headers, framing: bytes) -> None:
        self._has_begun, self._status = True, status
        own_lines = b"x-request-id: %b\r\n%b" % (self._request.request_id.encode(), framing)
        if self._request.has_token_in_url:  # the last policy counts, so a gateway's own does not
            own_lines += response_head.NO_REFERRER
        if self._usage is not None and _RATE_LIMIT_FIELDS.isdisjoint(dict(headers)):  # else the program's own count
            own_lines += self._usage.header_lines
        self._out.append(self._forward_head(status, headers, own_lines))

    def _forward_head(self, status: int, headers: Headers, own_lines: bytes) -> bytes:
        request = self._request
        prefix = request.auth.cookie_prefix.encode()
        return response_head.forward_response(status, headers, request.host, own_lines, prefix)

    def _answer_problem(self, problem: Problem) -> None:
        self._answer_with(errors.problem_response(self._request.error_form, problem), problem.message)

    def _answer_error(self, status: HTTPStatus, message: str) -> None:
        self._answer_with(errors.status_response(self._request.error_form, status, message), message)

    def _answer_with(self, response: Response, message: str) -> None:
        request, close = self._request, not self._keep_alive
        if request.is_from_page:
            response = response_head.error_page(response, message)
        body = response_head.response_bytes(response, request.request_id, close=close, head=request.is_head)
        self._answer(response.status_code, body)

    def _answer(self, status: int, response: bytes) -> None:
        if not self._is_over:
            self._has_begun, self._status = True, status
            self._sent += len(response)
            self._client.writer.write(self._client.transport, response)
            self._finish()

    def _finish(self) -> None:
        """End the exchange, and let the connection's next request have its turn."""
        if not self._is_over:
            self._leave()
            self._client.complete_response(keep_alive=self._keep_alive)

    def _leave(self) -> None:
        self._is_over = True
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
        if self._gateway is not None:
            self._gateway.abort()
            self._gateway = None
        if self._usage is not None:
            self._usage.charge_rest()
        request = self._request
        if request.upstream.source is not None:
            self._pool.remove_routed(request.upstream.source, self)
        self._pool.dependencies.observe(
            AccessRecord(
                agent_id=request.agent_id,
                method=request.auth.method,
                path=request.path,
                status=self._status,
                seconds=self._client.loop.time() - self._began,
                received=self._received,
                sent=self._sent,
                request_id=request.request_id,
            )
        )
