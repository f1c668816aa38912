"""Transparent proxy for programs without proxy support.

DNS gives each name an address of this container, and connections to the address go through an HTTP CONNECT proxy by
name. Addresses without a name lead nowhere.
"""

from __future__ import annotations

from .light_imports import Socket, socket, struct, suppress
from .protocol import receive_exactly
from .streams import bind_port, receive_datagram, send_all, serve_listener, splice_sockets
from .waiting import TimeLimit, gather_results

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .streams import SocketHandler

DNS_PORT, PORTS = 53, (22, 80, 443, 587, 993, 5222, 8443)
MAX_NAMES, MAX_STREAMS = 16_384, 512
DNS_SECONDS, CONNECT_SECONDS = 10.0, 30.0
TTL = 60
MAX_HEAD_BYTES = 4096
LABEL_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")
A_IN = b"\0\1\0\1"
PUBLIC_BLOCK, LOOPBACK_BLOCK = "28.77", "127.77"


class SyntheticAddresses:
    """Bounded table of addresses for names; the least recently used name loses its address.

    Some programs reject names with loopback addresses, so a public block is used if the runtime made it local, which it
    does before DNS can be served.
    """

    def __init__(self, limit: int = MAX_NAMES) -> None:
        self._limit = limit
        self._addresses: dict[str, str] = {}  # the least recently used first
        self._names: dict[str, str] = {}
        self._block = ""

    def get_address(self, name: str) -> str:
        if name == "localhost" or name.endswith(".localhost"):
            return "127.0.0.1"
        address = self._addresses.pop(name, None)
        if address is None:
            number = len(self._addresses) + 1
            self._block = self._block or _choose_block()
            address = f"{self._block}.{number >> 8}.{number & 255}"
            if number > self._limit:
                address = self._addresses.pop(next(iter(self._addresses)))
            self._names[address] = name
        self._addresses[name] = address
        return address

    def get_name(self, address: str) -> str | None:
        return self._names.get(address)


def _choose_block() -> str:
    with Socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            sock.bind((f"{PUBLIC_BLOCK}.0.1", 0))
        except OSError:
            return LOOPBACK_BLOCK
    return PUBLIC_BLOCK


def dns_answer(query: bytes, names: SyntheticAddresses) -> bytes | None:
    """Return the response to a DNS query (RFC 1035), None if malformed; only type A gets an address."""
    if len(query) < 17 or query[2] & 0xF8 or query[4:6] != b"\0\1":
        return None
    labels: list[str] = []
    at = 12
    while 0 < (length := query[at]) < 64 and at + length + 6 <= len(query):
        labels.append(query[at + 1 : at + 1 + length].decode("latin-1").lower())
        at += 1 + length
    if length or at > 266 or at + 5 > len(query):
        return None
    is_valid = bool(labels) and all(map(LABEL_CHARACTERS.issuperset, labels))
    answer = b""
    if is_valid and query[at + 1 : at + 5] == A_IN:
        address = socket.inet_aton(names.get_address(".".join(labels)))
        answer = struct.pack("!HHHIH", 0xC00C, 1, 1, TTL, 4) + address
    flags = 0x8080 | (query[2] & 1) << 8 | (0 if is_valid else 3)
    return query[:2] + struct.pack("!5H", flags, 1, bool(answer), 0, 0) + query[12 : at + 5] + answer


class TransparentProxy:
    """DNS server on port 53, and a relay on common ports."""

    def __init__(self, connect: Callable[[], Awaitable[Socket]], log_message: Callable[[str], None]) -> None:
        self._connect, self._log_message, self._names = connect, log_message, SyntheticAddresses()

    async def run(self) -> None:
        relays = [self._serve_port("0.0.0.0", port, lambda sock, port=port: self._tunnel(port, sock)) for port in PORTS]  # noqa: S104 - in the container
        await gather_results(self._serve_udp(), self._serve_port("127.0.0.1", DNS_PORT, self._serve_tcp), *relays)

    async def _serve_port(self, host: str, port: int, handle: SocketHandler) -> None:
        if listener := await bind_port(host, port, self._log_message):
            await serve_listener(listener, MAX_STREAMS, handle)

    async def _serve_udp(self) -> None:
        sock = await bind_port("127.0.0.1", DNS_PORT, self._log_message, socket.SOCK_DGRAM)
        while sock:
            with suppress(OSError):
                query, peer = await receive_datagram(sock, MAX_HEAD_BYTES)
                if answer := dns_answer(query, self._names):
                    sock.sendto(answer, peer)

    async def _serve_tcp(self, sock: Socket) -> None:
        with TimeLimit(DNS_SECONDS):
            while length := int.from_bytes(await receive_exactly(sock, 2)):
                if (answer := dns_answer(await receive_exactly(sock, length), self._names)) is None:
                    return
                await send_all(sock, len(answer).to_bytes(2) + answer)

    async def _tunnel(self, port: int, sock: Socket) -> None:
        name = self._names.get_name(sock.getsockname()[0])
        if name is None:
            return
        with await self._connect() as out:
            with TimeLimit(CONNECT_SECONDS):
                request = f"CONNECT {name}:{port} HTTP/1.1\r\nHost: {name}:{port}\r\n\r\n"
                await send_all(out, request.encode())
                head = b""
                while not head.endswith(b"\r\n\r\n") and len(head) < MAX_HEAD_BYTES:
                    head += await receive_exactly(out, 1)  # byte by byte, because the rest belongs to the program
            if head.split(b" ", 2)[1:2] == [b"200"]:
                await splice_sockets(sock, out)
