"""One request carried to an agent's gateway, and its answer carried back.

It stands between two connections and is driven by both: the client's protocol tells it of the request (it is a
`Turn`), the gateway's connection of the answer (it is an `Asker`). Nothing is kept but what one read brings: when one
side does not take what the other sends, the other is not read. Framing is written anew in both directions.
"""

import asyncio
from http import HTTPStatus

from roost.core import log
from roost.core.problem import Problem
from roost.hosts.edge import response_head
from roost.hosts.edge.gateway_connection import GatewayConnection
from roost.hosts.edge.guarded_http import GuardedHttpProtocol
from roost.hosts.edge.live_connections import LiveConnections
from roost.hosts.edge.proxy_request import ProxyRequest
from roost.hosts.edge.queued_request import QueuedRequest
from roost.hosts.edge.request_head import Headers
from roost.hosts.edge.request_metrics import RequestMetrics
from roost.hosts.edge.response_parser import InvalidResponse
from roost.hosts.edge.tunnel import WebSocketTunnel
from roost.web import errors
from roost.web.url_rule import ErrorForm

_log = log.get_logger(__name__)
_HELD = 64 * 1024
_RECENT = 2.0  # what may not be repeated takes no connection that the gateway may be about to close
_CLIENT_LEFT = 499


class ProxyExchange(QueuedRequest):
    def __init__(
        self, line: GuardedHttpProtocol, traffic: LiveConnections, asked: ProxyRequest, *, keep_alive: bool
    ) -> None:
        super().__init__(keep_alive=keep_alive)
        self.agent_id = asked.agent_id
        self._line, self._traffic, self._asked = line, traffic, asked
        self._account = RequestMetrics(traffic.gate, asked, line.loop.time())
        self._deadline = 0.0
        self._held: list[bytes] = []  # of the request, until there is somewhere to send it
        self._out: list[bytes] = []  # of the answer, until the present read is parsed
        self._task: asyncio.Task[None] | None = None
        self._upstream: GatewayConnection | None = None
        self._spoiled: tuple[HTTPStatus, str] | None = None
        self._is_uploaded = False
        self._is_admitted = False
        self._is_retry = False
        self._has_begun = False  # the answer
        self._in_chunks = False  # the answer, on its way out

    # As a Turn: the client's side

    def start(self) -> None:
        self._account.began = self._line.loop.time()
        self._traffic.enter(self)
        self._touch()
        if self._spoiled is not None:
            self._fail(*self._spoiled)
        else:
            self._task = self._line.loop.create_task(self._open())

    def upload(self, data: bytes) -> None:
        self._account.received += len(data)
        part = b"%x\r\n%b\r\n" % (len(data), data) if self._asked.facts.chunked else data
        upstream = self._upstream
        if upstream is None or self._asked.facts.websocket:
            self._held.append(part)
            if self._account.received > _HELD or self._asked.facts.websocket:
                self._line.flow.pause_reading()
        else:
            upstream.transport.write(part)
            self._touch()

    def uploaded(self) -> None:
        self._is_uploaded = True
        if not self._asked.facts.chunked:
            return
        if self._upstream is None:
            self._held.append(b"0\r\n\r\n")
        else:
            self._upstream.transport.write(b"0\r\n\r\n")
            self._touch()

    def spoil(self, status: HTTPStatus, message: str) -> None:
        self.keep_alive = False
        if self.response_complete or self._has_begun:
            self._cut()
        elif self._task is None:
            self._spoiled = status, message
        else:
            self._fail(status, message)

    def half_closed(self) -> bool:
        self.keep_alive = False
        return self._is_uploaded and not self.response_complete and not self._asked.facts.websocket

    def lost(self) -> None:
        if not self.response_complete:
            if not self._has_begun:
                self._account.status = _CLIENT_LEFT
            self._leave()

    def client_full(self) -> None:
        if self._upstream is not None:
            self._upstream.read(wanted=False)

    def client_ready(self) -> None:
        if self._upstream is not None:
            self._upstream.read(wanted=True)

    # As something live: time, and letting go

    def drop(self) -> None:
        self._line.transport.abort()
        self.lost()

    def look(self, now: float) -> None:
        if now > self._deadline:
            self._expire()
        elif self._is_dripping(now):
            self._fail(HTTPStatus.REQUEST_TIMEOUT, "Request timeout")

    def _expire(self) -> None:
        if self._has_begun:
            self._line.transport.abort()
            self.lost()
        elif self._waits_for_client():
            self._fail(HTTPStatus.REQUEST_TIMEOUT, "Request timeout")
        else:
            self._fail(HTTPStatus.GATEWAY_TIMEOUT, "The agent took too long to answer")

    def _waits_for_client(self) -> bool:
        return not self._is_uploaded and self._upstream is not None and not self._upstream.is_full

    def _is_dripping(self, now: float) -> bool:
        bounds = self._traffic.gate.bounds
        late = now - self._account.began - bounds.body_grace
        slow = late > 0 and self._account.received < late * bounds.body_rate
        return slow and not self._has_begun and self._waits_for_client()

    def _touch(self) -> None:
        """Something moved: the time for the next thing begins."""
        bounds = self._traffic.gate.bounds
        if self._has_begun:
            seconds = bounds.idle
        else:
            seconds = bounds.body_idle if self._waits_for_client() else bounds.response_head
        self._deadline = self._line.loop.time() + seconds

    # To the gateway

    async def _open(self) -> None:
        asked, gate = self._asked, self._traffic.gate
        try:
            if not self._is_admitted:
                entry = asked.entry()
                await gate.admit(entry)
                self._is_admitted = True
                if (signed_in := asked.signed_in(entry, close=not self.keep_alive)) is not None:
                    self._answer_ourselves(HTTPStatus.SEE_OTHER, signed_in)
                    return
            oldest = 0.0 if self._is_retry else gate.bounds.spare if asked.is_repeatable else _RECENT
            upstream = await self._traffic.pool.take(self.agent_id, oldest=oldest)
        except Problem as problem:
            response = errors.problem_response(ErrorForm.AGENTS, problem)
            self._answer_ourselves(
                response.status_code, response_head.of(response, asked.request_id, head=asked.is_head)
            )
        except OSError:
            self._fail(HTTPStatus.BAD_GATEWAY, "The agent does not answer")
        except Exception:  # noqa: BLE001 - the edge of a request: it logs and answers
            _log.exception("A request could not be carried", request_id=asked.request_id)
            self._fail(HTTPStatus.INTERNAL_SERVER_ERROR, "Internal error")
        else:
            self._ask(upstream)

    def _ask(self, upstream: GatewayConnection) -> None:
        asked, line = self._asked, self._line
        self._upstream = upstream
        request = [asked.onward(self._traffic.gate.addresses.scheme, upstream.credential)]
        if not asked.facts.websocket:
            request += self._held
            if asked.facts.expects and not self._held and not self._is_uploaded:
                line.transport.write(response_head.CONTINUE)
            self._held = []
            if not self._is_uploaded:
                line.flow.resume_reading()
        upstream.ask(self, b"".join(request), bodiless=asked.is_head)
        if line.flow.write_paused:
            upstream.read(wanted=False)
        self._touch()

    # As an Asker: the gateway's side

    def hint(self, status: int, headers: Headers) -> None:
        if status != HTTPStatus.CONTINUE and self._asked.version == "1.1":
            self._out.append(response_head.interim(status, headers, self._asked.host))

    def switch(self, headers: Headers) -> None:
        if not self._asked.facts.websocket:
            raise InvalidResponse("a switch of protocols that nobody asked for")
        self._begin(HTTPStatus.SWITCHING_PROTOCOLS)
        self._out.append(response_head.switch(headers, self._asked.host, self._asked.request_id))

    def answer(self, status: int, headers: Headers, length: int | None, *, has_body: bool) -> None:
        asked = self._asked
        self._begin(status)
        self._in_chunks = has_body and length is None and asked.version == "1.1"
        if has_body and length is None and not self._in_chunks:
            self.keep_alive = False
        framing = b"" if self.keep_alive else response_head.CLOSE
        if self._in_chunks:
            framing += b"transfer-encoding: chunked\r\n"
        elif length is not None and status != HTTPStatus.NO_CONTENT:
            framing += b"content-length: %d\r\n" % length
        self._out.append(response_head.carry(status, headers, asked.host, asked.request_id, framing))

    def body(self, data: bytes) -> None:
        if self._in_chunks:
            self._out += (b"%x\r\n" % len(data), data, b"\r\n")
        else:
            self._out.append(data)

    def flush(self) -> None:
        self._touch()
        out, self._out = self._out, []
        if out:
            self._account.sent += sum(map(len, out))
            self._line.transport.writelines(out)

    def answered(self, *, reusable: bool) -> None:
        if self._in_chunks:
            self._line.transport.write(b"0\r\n\r\n")
        upstream, self._upstream = self._upstream, None
        if upstream is not None:
            if reusable and self._is_uploaded:
                self._traffic.pool.give_back(upstream)
            else:
                upstream.drop()
        self._finish()

    def switched(self, rest: bytes) -> None:
        upstream, self._upstream = self._upstream, None
        assert upstream is not None
        self.response_complete = True
        self._traffic.leave(self)
        tunnel = WebSocketTunnel(self._line, self._traffic, upstream, self._account)
        tunnel.begin(early=b"".join(self._held), rest=rest)

    def gateway_failed(self, *, bad: bool) -> None:
        upstream, self._upstream = self._upstream, None
        assert upstream is not None
        if self._has_begun:
            self._cut()
        elif upstream.reused and self._asked.is_repeatable and not (bad or self._is_retry):
            self._is_retry = True
            self._task = self._line.loop.create_task(self._open())
        else:
            self._fail(HTTPStatus.BAD_GATEWAY, "The agent gave no usable answer")

    def gateway_full(self) -> None:
        if not self._is_uploaded:
            self._line.flow.pause_reading()
        self._touch()

    def gateway_ready(self) -> None:
        if not self._is_uploaded:
            self._line.flow.resume_reading()
        self._touch()

    # The end

    def _begin(self, status: int) -> None:
        self._has_begun = True
        self._account.status = status

    def _fail(self, status: HTTPStatus, message: str) -> None:
        asked = self._asked
        answer = response_head.error(status, message, asked.request_id, close=not self.keep_alive, head=asked.is_head)
        self._answer_ourselves(status, answer)

    def _answer_ourselves(self, status: int, answer: bytes) -> None:
        if self.response_complete:
            return
        self._begin(status)
        self._account.sent += len(answer)
        self._line.transport.write(answer)
        self._finish()

    def _cut(self) -> None:
        """The answer cannot be completed: the client sees that by the connection's end."""
        self.keep_alive = False
        self._finish()

    def _finish(self) -> None:
        """The answer is out: leave, and let the connection's next request have its turn."""
        if not self.response_complete:
            self._leave()
            if self.keep_alive:
                self._line.on_response_complete()
                return
        self._line.hang_up()

    def _leave(self) -> None:
        self.response_complete = True
        if self._task is not None and self._task is not asyncio.current_task():
            self._task.cancel()
        if self._upstream is not None:
            self._upstream.drop()
            self._upstream = None
        self._traffic.leave(self)
        self._account.close(self._line.loop.time())
