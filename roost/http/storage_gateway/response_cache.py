"""Small public responses of storage gateways, in memory.

Such a response depends on the request line, two headers and the database alone. It is kept for half a second, in which
other servers may change the database, and until this server writes to it. The row `gateway: GETs of 4 KiB, verified` of
`bench gateway` measures it.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from roost.core import clock
from roost.http.server.request_head import RequestHead

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
