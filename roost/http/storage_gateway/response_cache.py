"""Small public responses of storage gateways, in memory, and requests that are answered with them.

Such a response depends on the request line, two headers and the database alone. It is kept for half a second, in which
other servers may change the database, and until this server writes to it. The row `gateway: GETs of 4 KiB, verified` of
`bench gateway` measures it.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from roost.core import clock
from roost.http.server.http_connection import HttpConnection
from roost.http.server.own_response import CLOSE
from roost.http.server.request_head import RequestHead
from roost.http.stack.rate_limits import RequestUsage
from roost.web import errors
from roost.web.access_log import AccessRecord, Observe, request_id

MAX_BODY = 64 * 1024
_MAX_BYTES = 16 * 1024**2
_LIFETIME_SECONDS = 0.5

CacheKey = tuple[bytes, str, str]


@dataclass(frozen=True)
class CachedResponse:
    """A response to GET with status 200.

    head: status line and header lines, without those that each response has of its own. count: counts a response with
    these request headers and this number of bytes.
    """

    head: bytes
    body: bytes
    count: Callable[[Mapping[str, str], int], None]


def cache_key(head: RequestHead) -> CacheKey | None:
    """Return what a response depends on, or None for a request whose response may depend on more."""
    accept = head.headers.cacheable_accept
    if accept is None or head.method != b"GET":
        return None
    return head.target, head.headers.host, accept


class ResponseCache:
    def __init__(self, data_version: Callable[[], int]) -> None:
        """data_version: returns a number that changes whenever this server writes to the database."""
        self.data_version = data_version
        self._version = data_version()
        self._entries: OrderedDict[CacheKey, tuple[float, CachedResponse]] = OrderedDict()
        self._bytes = 0

    def find(self, key: CacheKey) -> CachedResponse | None:
        entry = self._entries.get(key)
        if entry is None or entry[0] < clock.monotonic_seconds() or self._version != self.data_version():
            return None
        return entry[1]

    def add(self, key: CacheKey, version: int, response: CachedResponse) -> None:
        """Keep a response that was made of the data of `version`; beyond 16 MiB the oldest are removed."""
        if len(response.body) > MAX_BODY or version != self.data_version():
            return
        if self._version != version:
            self._entries.clear()
            self._version, self._bytes = version, 0
        if (replaced := self._entries.pop(key, None)) is not None:
            self._bytes -= _size(key, replaced[1])
        self._entries[key] = (clock.monotonic_seconds() + _LIFETIME_SECONDS, response)
        self._bytes += _size(key, response)
        while self._bytes > _MAX_BYTES:
            oldest, (_, removed) = self._entries.popitem(last=False)
            self._bytes -= _size(oldest, removed)


def _size(key: CacheKey, response: CachedResponse) -> int:
    return sum(map(len, key)) + len(response.head) + len(response.body)


class CachedExchange:
    """One request, answered without the application; it waits while the client has not read earlier responses."""

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
