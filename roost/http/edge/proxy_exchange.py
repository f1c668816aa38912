"""One request carried from a client to an agent's gateway; after a switch to WebSocket, one half of a tunnel.

The client's connection drives it. `ProxyResponse` is the other half, which the gateway's connection drives. At most
one read is kept: while one side does not accept data, the other is not read. The framing of both bodies is rewritten.
"""

import asyncio
from collections.abc import Awaitable, Callable
from http import HTTPStatus

from starlette.responses import Response

from roost.core import log
from roost.core.problem import Problem
from roost.core.rate_limit import RateLimitExceeded
from roost.drivers.runtime.peer_contract import PeerFailed
from roost.http.edge.dependencies import GatewayUnreachable
from roost.http.edge.forwarded_head import error_page, forward_request, pass_request
from roost.http.edge.gateway_connection import GatewayConnection
from roost.http.edge.gateway_pool import GatewayPool
from roost.http.edge.proxy_request import ProxyRequest
from roost.http.edge.proxy_response import ProxyResponse
from roost.http.edge.tunnel import Tunnel
from roost.http.server.http_connection import HttpConnection
from roost.http.server.own_response import CONTINUE, response_bytes
from roost.http.stack.client_address import forwarded_client_ip
from roost.http.stack.rate_limits import UNCOUNTED
from roost.identity.caller import Caller
from roost.warden_client.errors import DialRefused
from roost.web import errors
from roost.web.access_log import AccessRecord

_log = log.get_logger(__name__)
_MAX_HELD = 64 * 1024
NOTHING_LISTENS = (
    "Nothing answers on port {port} of this agent. Start a program that listens there, for instance by the script "
    "`start` of its manifest.json."
)
_RECENT = 2.0  # a request that may not be repeated takes no connection that the gateway may be about to close


class ProxyExchange:
    def __init__(self, client: HttpConnection, pool: GatewayPool, request: ProxyRequest, *, keep_alive: bool) -> None:
        self.client, self.request = client, request
        self.gateway: GatewayConnection | None = None
        self.held: list[bytes] = []
        """Parts of the request that wait for a connection to the gateway, or for the tunnel."""
        self.usage = UNCOUNTED
        self.status = self.received = self.sent = 0  # what the client gets, and the bytes of both directions
        self.is_uploaded = self.has_begun = False
        self.keep_alive = keep_alive
        self.pool, self._limits = pool, pool.dependencies.limits
        self._began = 0.0
        self._task: asyncio.Task[None] | None = None
        self.tunnel: Tunnel | None = None
        self._is_retry = self._is_over = False

    def start(self) -> None:
        self._began = self.client.loop.time()
        upstream = self.request.upstream
        if upstream.source is not None:
            self.pool.add_routed(upstream.source, self)
        if upstream.server is not None:  # it admits and counts the request
            self._connect()
        elif not upstream.is_protected:
            self._count(None)
        elif (caller := self.pool.dependencies.recall(self.request.auth)) is not None:
            self._count(caller)
        else:
            self._run(self._admit)

    def receive_body(self, data: bytes) -> None:
        self.received += len(data)
        self.usage.count_bytes(len(data))
        self._write_request(b"%x\r\n%b\r\n" % (len(data), data) if self.request.head.headers.chunked else data)

    def end_body(self) -> None:
        self.is_uploaded = not self.request.head.websocket
        if self.request.head.headers.chunked:
            self._write_request(b"0\r\n\r\n")

    def disable_keep_alive(self) -> None:
        self.keep_alive = False

    def disconnect(self) -> bool:
        has_begun = self.has_begun
        if not self._is_over:
            self.status = self.status or errors.CLIENT_LEFT
            if self.tunnel is not None and self.gateway is not None:
                self.gateway.close()
                self.gateway = None
            self._leave()
        return has_begun

    def pause_response(self) -> None:
        if self.gateway is not None:
            self.gateway.set_reading(wanted=False)

    def resume_response(self) -> None:
        if self.gateway is not None:
            self.gateway.set_reading(wanted=True)

    def check_time(self) -> None:
        if self.has_begun:
            self.drop()
        elif self._waits_for_client():
            self._answer_error(HTTPStatus.REQUEST_TIMEOUT, "Request timeout")
        else:
            self._answer_error(HTTPStatus.GATEWAY_TIMEOUT, "The agent took too long to answer")

    # Time

    def _waits_for_client(self) -> bool:
        return not self.is_uploaded and self.gateway is not None and not self.gateway.is_full

    def touch(self) -> None:
        """Start the time for the next progress; a slow upload has its time at `body_rate`."""
        limits = self._limits
        if self.has_begun:
            seconds = limits.idle
        elif self._waits_for_client():
            left = self._began + limits.body_grace + self.received / limits.body_rate - self.client.loop.time()
            seconds = min(limits.body_idle, left)
        else:
            seconds = limits.response_head if self.request.upstream.server is None else None  # it has limits of its own
        self.client.set_deadline(seconds)

    # To the gateway

    def _run(self, steps: Callable[[], Awaitable[None]]) -> None:
        self.touch()
        self._task = self.client.loop.create_task(self._answer_problems(steps))

    async def _answer_problems(self, steps: Callable[[], Awaitable[None]]) -> None:
        try:
            await steps()  # called here: a task that is cancelled before its first step calls nothing
        except Problem as problem:
            self._answer_problem(problem)
        except OSError:
            self._answer_error(HTTPStatus.BAD_GATEWAY, "The agent does not answer")
        except Exception:  # noqa: BLE001 - the edge of a request: it logs and answers
            _log.exception("request.failed", request_id=self.request.request_id)
            self._answer_error(HTTPStatus.INTERNAL_SERVER_ERROR, "Internal error")

    async def _admit(self) -> None:
        self._count(await self.pool.dependencies.admit(self.request.auth))

    def _count(self, caller: Caller | None) -> None:
        """Count the request on its caller, else on its client, and on its host; send it unless that is too much."""
        auth, limits = self.request.auth, self.pool.dependencies.rate_limits
        try:
            usage = limits.start_request(
                auth.limited_client, auth.host.origin, None if caller is None else caller.token_digest
            )
        except RateLimitExceeded as exceeded:
            self._answer_problem(exceeded)
            return
        usage.count_bytes(self.received)
        self.usage = usage
        self._connect()

    def _connect(self) -> None:
        """Send the admitted request on an idle connection, else on a new one."""
        request = self.request
        if (redirect := request.sign_in_redirect()) is not None:
            self._answer(redirect)
            return
        max_idle = 0.0 if self._is_retry else self._limits.spare if request.is_repeatable else _RECENT
        if (gateway := self.pool.take_idle(request.upstream, self.client.loop.time() - max_idle)) is not None:
            self._send(gateway)
        else:
            self._run(self._dial)

    async def _dial(self) -> None:
        try:
            gateway = await self.pool.dial(self.request.upstream, self)
        except PeerFailed as problem:
            _log.warning("peer.failed", request_id=self.request.request_id, reason=problem.message)
            self._answer_problem(GatewayUnreachable(retry_after=1))
        except (DialRefused, GatewayUnreachable):
            if self.request.upstream.port is None:
                raise
            self._answer_error(HTTPStatus.BAD_GATEWAY, NOTHING_LISTENS.format(port=self.request.upstream.port))
        else:
            self._send(gateway)

    def _send(self, gateway: GatewayConnection) -> None:
        request, client = self.request, self.client
        self.gateway = gateway
        self.pool.record_use(request.upstream)
        parts = [self._forward_head(gateway)]
        if not request.head.websocket:  # early data of a tunnel waits for it
            if request.head.headers.expects and not self.held and not self.is_uploaded:
                client.writer.write(client.transport, CONTINUE)
            parts += self.held
            self.held = []
            if not self.is_uploaded:
                client.flow.resume_reading()
        gateway.send_request(ProxyResponse(self), b"".join(parts), bodiless=request.is_head)
        if client.flow.write_paused:
            gateway.set_reading(wanted=False)
        self.touch()

    def _forward_head(self, gateway: GatewayConnection) -> bytes:
        request = self.request
        if request.upstream.server is not None:
            # Limits there would not count a client on loopback, which is counted here.
            is_counted = request.auth.limited_client is not None
            client = forwarded_client_ip(request.auth.peer) if is_counted else request.auth.peer
            return pass_request(request.head, client, request.request_id, request.hops + 1)
        return forward_request(
            request.head,
            client=request.auth.peer,
            scheme=self.pool.dependencies.addresses.scheme,
            request_id=request.request_id,
            credential=gateway.credential,
            prefix=request.upstream.prefix,
            is_open=not request.upstream.is_protected,
        )

    def _write_request(self, part: bytes) -> None:
        if self.gateway is not None and not self.request.head.websocket:
            self.gateway.write(part)
            self.touch()
        else:
            self.held.append(part)
            if self.received > _MAX_HELD or self.request.head.websocket:
                self.client.flow.pause_reading()

    def drop(self) -> None:
        self.client.transport.abort()
        self.disconnect()

    def fail(self, *, retry: bool) -> None:
        """End the exchange without the gateway's response, or send a request that may be repeated once more."""
        self.gateway = None
        if self.has_begun and self.sent:  # the client sees by the connection's end that the response is incomplete
            self.keep_alive = False
            self.finish()
        elif retry and self.request.is_repeatable and not self._is_retry:
            self._is_retry = True
            self._connect()
        else:
            self._answer_error(HTTPStatus.BAD_GATEWAY, "The agent gave no usable answer")

    def finish(self, *, reusable: bool = False) -> None:
        """End the exchange, and let the client's next request have its turn.

        reusable: whether the connection to the gateway may carry another request.
        """
        if reusable and self.is_uploaded and self.gateway is not None:
            self.pool.put_back(self.gateway, self.client.loop.time())
            self.gateway = None
        if not self._is_over:
            self._leave()
            self.client.complete_response(keep_alive=self.keep_alive)

    def _answer_problem(self, problem: Problem) -> None:
        self._answer_with(errors.problem_response(self.request.error_form, problem), problem.message)

    def _answer_error(self, status: HTTPStatus, message: str) -> None:
        self._answer_with(errors.status_response(self.request.error_form, status, message), message)

    def _answer_with(self, response: Response, message: str) -> None:
        self._answer(error_page(response, message) if self.request.is_from_page else response)

    def _answer(self, response: Response) -> None:
        """Answer in the gateway's place."""
        if not self._is_over:
            request, close = self.request, not self.keep_alive
            data = response_bytes(response, request.request_id, close=close, head=request.is_head)
            self.has_begun, self.status = True, response.status_code
            self.sent += len(data)
            self.client.writer.write(self.client.transport, data)
            self.finish()

    def _leave(self) -> None:
        self._is_over = True
        tunnel, self.tunnel = self.tunnel, None
        if tunnel is not None:
            tunnel.end()
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
        if self.gateway is not None:
            self.gateway.abort()
            self.gateway = None
        self.usage.charge_rest()
        request = self.request
        if request.upstream.source is not None:
            self.pool.remove_routed(request.upstream.source, self)
        self.pool.dependencies.observe(
            AccessRecord(
                agent_id=request.upstream.agent_id or None,
                method=request.auth.method,
                path=request.logged_path,
                status=self.status,
                seconds=self.client.loop.time() - self._began,
                received=self.received,
                sent=self.sent,
                request_id=request.request_id,
            )
        )
