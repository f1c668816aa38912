"""A request that is answered from memory, without the application."""

from roost.core import clock
from roost.http.server.http_connection import HttpConnection
from roost.http.server.own_response import CLOSE
from roost.http.server.request_head import RequestHead
from roost.http.stack.rate_limits import RequestUsage
from roost.http.storage_gateway.response_cache import CachedResponse
from roost.web import errors
from roost.web.access_log import AccessRecord, Observe
from roost.web.request_id import request_id


class CachedExchange:
    """One request; it waits while the client has not read earlier responses."""

    def __init__(
        self,
        client: HttpConnection,
        head: RequestHead,
        response: CachedResponse,
        observe: Observe,
        usage: RequestUsage,
    ) -> None:
        self._client, self._head, self._response, self._observe = client, head, response, observe
        self._usage = usage
        self._began = clock.monotonic_seconds()
        self._request_id = request_id(head.headers.fields.get("x-request-id"))
        self._keep_alive = True

    def start(self) -> None:
        self._client.set_deadline(None)
        if not self._client.flow.write_paused:
            self._answer()

    def receive_body(self, data: bytes) -> None:
        """Ignore the body: requests with one are not answered from memory."""

    def end_body(self) -> None: ...

    def disable_keep_alive(self) -> None:
        self._keep_alive = False

    def disconnect(self) -> bool:
        self._write_record(errors.CLIENT_LEFT, 0)
        return False

    def pause_response(self) -> None:
        self._client.check_writing()

    def resume_response(self) -> None:
        self._client.set_deadline(None)
        self._answer()

    def check_time(self) -> None:
        self._client.check_writing()

    def _answer(self) -> None:
        client, response = self._client, self._response
        own = [b"%b: %b\r\n" % header for header in client.server_state.default_headers]
        own.append(self._usage.header_lines)
        self._usage.count_bytes(len(response.body))
        self._usage.charge_rest()
        own.append(b"x-request-id: %b\r\n%b\r\n" % (self._request_id.encode(), b"" if self._keep_alive else CLOSE))
        client.writer.write(client.transport, b"".join((response.head, *own, response.body)))
        response.count(self._head.headers.fields, len(response.body))
        self._write_record(200, len(response.body))
        client.complete_response(keep_alive=self._keep_alive)

    def _write_record(self, status: int, sent: int) -> None:
        path = self._head.target.partition(b"?")[0].decode()
        seconds = clock.monotonic_seconds() - self._began
        self._observe(AccessRecord("GET", path, status, seconds, 0, sent, self._request_id))
