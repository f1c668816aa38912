"""The response of an agent's gateway to one request, carried to the client; then the other half of a tunnel."""

from http import HTTPStatus
from typing import TYPE_CHECKING

from roost.http.edge.forwarded_head import NO_REFERRER, forward_response, pass_response
from roost.http.edge.gateway_connection import InvalidResponse
from roost.http.edge.tunnel import Tunnel
from roost.http.server.own_response import CLOSE
from roost.http.server.request_head import Headers
from roost.web.rate_limit_fields import FIELD_NAMES

if TYPE_CHECKING:
    from roost.http.edge.proxy_exchange import ProxyExchange

_RATE_LIMIT_FIELDS = frozenset(name.lower().encode() for name in FIELD_NAMES)
_NO_CONTENT = int(HTTPStatus.NO_CONTENT)


class ProxyResponse:
    """Receiver of one response (`ResponseHandler`), which the connection to the gateway drives."""

    def __init__(self, exchange: "ProxyExchange") -> None:
        self._exchange = exchange
        self._is_chunked = False
        self._out: list[bytes] = []  # until the current read is parsed

    def begin_response(self, status: int, headers: Headers, length: int | None, *, has_body: bool) -> None:
        self._is_chunked = has_body and length is None and self._exchange.request.head.headers.version == "1.1"
        if has_body and length is None and not self._is_chunked:
            self._exchange.keep_alive = False
        framing = b"" if self._exchange.keep_alive else CLOSE
        if self._is_chunked:
            framing += b"transfer-encoding: chunked\r\n"
        elif length is not None and status != _NO_CONTENT:
            framing += b"content-length: %d\r\n" % length
        self._begin(status, headers, framing)

    def forward_informational(self, status: int, headers: Headers) -> None:
        if status != HTTPStatus.CONTINUE and self._exchange.request.head.headers.version == "1.1":
            self._out.append(self._forward_head(status, headers, b""))

    def begin_tunnel(self, headers: Headers) -> None:
        if not self._exchange.request.head.websocket:
            raise InvalidResponse("a switch of protocols without a request for it")
        self._begin(HTTPStatus.SWITCHING_PROTOCOLS, headers, b"connection: Upgrade\r\nupgrade: websocket\r\n")

    def open_tunnel(self) -> None:
        """Carry bytes both ways until one side ends, after all that was written before."""
        self.flush_response()
        exchange, gateway = self._exchange, self._exchange.gateway
        if gateway is not None:
            exchange.client.writer.flush(exchange.client.transport)
            gateway.write(b"".join(exchange.held))
            gateway.writes.flush(gateway.transport)
            exchange.held = []
            exchange.tunnel = Tunnel(exchange.client.transport, gateway.transport, self._count_traffic)
            exchange.client.flow.resume_reading()

    def write_body(self, data: bytes) -> None:
        if self._is_chunked:
            self._out += (b"%x\r\n" % len(data), data, b"\r\n")
        else:
            self._out.append(data)

    def flush_response(self) -> None:
        if self._exchange.has_begun or self._out:  # a part of a head is no progress: it could come byte by byte
            self._exchange.touch()
        self._write_response()

    def finish_response(self, *, reusable: bool) -> None:
        if self._is_chunked:
            self._out.append(b"0\r\n\r\n")
        self._write_response()
        self._exchange.finish(reusable=reusable)

    def fail_response(self, *, retry: bool) -> None:
        self._out.clear()
        self._exchange.fail(retry=retry)

    def pause_request(self) -> None:
        if not self._exchange.is_uploaded:
            self._exchange.client.flow.pause_reading()
        self._exchange.touch()

    def resume_request(self) -> None:
        if not self._exchange.is_uploaded:
            self._exchange.client.flow.resume_reading()
        self._exchange.touch()

    def drop(self) -> None:
        self._exchange.drop()

    def _count_traffic(self, received: int, sent: int, has_message: bool) -> None:
        exchange = self._exchange
        exchange.received += received
        exchange.sent += sent
        exchange.usage.count_bytes(received + sent)
        if has_message:
            exchange.pool.record_use(exchange.request.upstream)
        if exchange.tunnel is not None:  # otherwise it has ended
            exchange.touch()

    def _write_response(self) -> None:
        if self._out:
            exchange, data = self._exchange, b"".join(self._out)
            self._out.clear()
            exchange.sent += len(data)
            exchange.usage.count_bytes(len(data))
            exchange.client.writer.write(exchange.client.transport, data)

    def _begin(self, status: int, headers: Headers, framing: bytes) -> None:
        exchange = self._exchange
        exchange.has_begun, exchange.status = True, status
        own_lines = b"x-request-id: %b\r\n%b" % (exchange.request.request_id.encode(), framing)
        if exchange.request.upstream.server is None and exchange.request.has_token_in_url:
            own_lines += NO_REFERRER  # the last policy counts, so a gateway's own does not
        limits = exchange.usage.header_lines
        if limits and _RATE_LIMIT_FIELDS.isdisjoint(dict(headers)):  # else the program's own count
            own_lines += limits
        self._out.append(self._forward_head(status, headers, own_lines))

    def _forward_head(self, status: int, headers: Headers, own_lines: bytes) -> bytes:
        request = self._exchange.request
        if request.upstream.server is not None:
            return pass_response(status, headers, own_lines)
        host, cookie_prefix = request.head.headers.host_name, request.auth.host.cookie_prefix.encode()
        return forward_response(status, headers, host, own_lines, cookie_prefix)
