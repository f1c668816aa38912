"""A way out for programs that know no proxy: DNS gives each name an address of this container, and a connection to that
address is led through the socket of an HTTP CONNECT proxy by its name. Raw addresses lead nowhere.
"""

import asyncio
import re
import socket
import struct
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, partial

from .protocol import exactly
from .streams import Handle, bind, reach, serve, splice

PORTS = (22, 80, 443, 587, 993, 5222, 8443)
NAMES, STREAMS = 16_384, 512
DNS_SECONDS, CONNECT_SECONDS = 10.0, 30.0
TTL = 60
HEAD = 4096
LABEL = re.compile("[a-z0-9_-]{1,63}")
A_IN = b"\0\1\0\1"
PUBLIC, LOOPBACK = "28.77", "127.77"


class SyntheticAddresses:
    """Addresses that stand for names. Bounded: the name that was asked for longest ago gives its address away.

    Programs that guard themselves refuse names with loopback addresses, so a public block is taken where the runtime
    has given it to this container. It has done so before DNS can be served.
    """

    def __init__(self, most: int = NAMES) -> None:
        self._most = most
        self._addresses: OrderedDict[str, str] = OrderedDict()
        self._names: dict[str, str] = {}

    def address(self, name: str) -> str:
        if name == "localhost" or name.endswith(".localhost"):
            return "127.0.0.1"
        address = self._addresses.pop(name, None)
        if address is None:
            number = len(self._addresses) + 1
            address = f"{self._block}.{number >> 8}.{number & 255}"
            if number > self._most:
                address = self._addresses.popitem(last=False)[1]
            self._names[address] = name
        self._addresses[name] = address
        return address

    def name(self, address: str) -> str | None:
        return self._names.get(address)

    @cached_property
    def _block(self) -> str:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            try:
                sock.bind((f"{PUBLIC}.0.1", 0))
            except OSError:
                return LOOPBACK
        return PUBLIC


def dns_answer(query: bytes, names: SyntheticAddresses) -> bytes | None:
    """The answer to a query (RFC 1035), None when it is none. A gets an address, every other type an empty answer."""
    if len(query) < 17 or query[2] & 0xF8 or query[4:6] != b"\0\1":
        return None
    labels: list[str] = []
    at = 12
    while 0 < (length := query[at]) < 64 and at + length + 6 <= len(query):
        labels.append(query[at + 1 : at + 1 + length].decode("latin-1").lower())
        at += 1 + length
    if length or at > 266 or at + 5 > len(query):
        return None
    known = bool(labels) and all(map(LABEL.fullmatch, labels))
    answer = b""
    if known and query[at + 1 : at + 5] == A_IN:
        address = socket.inet_aton(names.address(".".join(labels)))
        answer = struct.pack("!HHHIH", 0xC00C, 1, 1, TTL, 4) + address
    flags = 0x8080 | (query[2] & 1) << 8 | (0 if known else 3)
    return query[:2] + struct.pack("!5H", flags, 1, bool(answer), 0, 0) + query[12 : at + 5] + answer


class TransparentProxy:
    """DNS on port 53 and a relay on the ports that programs use most."""

    def __init__(self, proxy: str, note: Callable[[str], None]) -> None:
        self._proxy, self._note, self._names = proxy, note, SyntheticAddresses()

    async def run(self) -> None:
        doors = [self._door("0.0.0.0", port, partial(self._tunnel, port)) for port in PORTS]  # noqa: S104 - in the container
        await asyncio.gather(self._datagrams(), self._door("127.0.0.1", 53, self._stream), *doors)

    async def _door(self, host: str, port: int, handle: Handle) -> None:
        if listener := await bind(host, port, self._note):
            await serve(listener, STREAMS, handle)

    async def _datagrams(self) -> None:
        sock = await bind("127.0.0.1", 53, self._note, socket.SOCK_DGRAM)
        while sock:
            with suppress(OSError):
                query, peer = await asyncio.get_running_loop().sock_recvfrom(sock, HEAD)
                if answer := dns_answer(query, self._names):
                    sock.sendto(answer, peer)

    async def _stream(self, sock: socket.socket) -> None:
        async with asyncio.timeout(DNS_SECONDS):
            while answer := dns_answer(await exactly(sock, int.from_bytes(await exactly(sock, 2))), self._names):
                await asyncio.get_running_loop().sock_sendall(sock, len(answer).to_bytes(2) + answer)

    async def _tunnel(self, port: int, sock: socket.socket) -> None:
        name = self._names.name(sock.getsockname()[0])
        if name is None:
            return
        with await reach(socket.AF_UNIX, self._proxy) as out:
            async with asyncio.timeout(CONNECT_SECONDS):
                ask = f"CONNECT {name}:{port} HTTP/1.1\r\nHost: {name}:{port}\r\n\r\n"
                await asyncio.get_running_loop().sock_sendall(out, ask.encode())
                head = b""
                while not head.endswith(b"\r\n\r\n") and len(head) < HEAD:
                    head += await exactly(out, 1)  # not a byte more: what follows belongs to the program
            if head.split(b" ", 2)[1:2] == [b"200"]:
                await splice(sock, out)
