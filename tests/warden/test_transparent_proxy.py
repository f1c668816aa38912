"""DNS and the transparent relay, also in a container with its own loopback."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.drivers.runtime.contract import ContainerSpec
from roost.drivers.runtime.fake import FakeRuntime
from roost.warden.transparent_proxy import SyntheticAddresses, dns_answer
from roost.warden_client.client import WardenClient
from tests.conformance.runtimes import AGENT, open_runtime_env

A, AAAA, TXT = 1, 28, 16


def query(name: str, kind: int = A, *, flags: int = 0x0100, tail: bytes = b"", count: int = 1) -> bytes:
    labels = b"".join(bytes([len(label)]) + label for label in name.encode("latin-1").split(b".") if label)
    return struct.pack("!6H", 0xBEEF, flags, count, 0, 0, 0) + labels + struct.pack("!BHH", 0, kind, 1) + tail


def address(answer: bytes | None) -> str | None:
    """Return the address of the only record, if there is one."""
    assert answer is not None
    assert answer[:2] == b"\xbe\xef"
    assert answer[2] & 0x80
    records = int.from_bytes(answer[6:8])
    return ".".join(map(str, answer[-4:])) if records else None


def code(answer: bytes | None) -> int:
    assert answer is not None
    return answer[3] & 15


def test_a_name_has_one_address_in_any_case() -> None:
    names = SyntheticAddresses()
    first = address(dns_answer(query("Example.COM"), names))
    assert first == address(dns_answer(query("example.com"), names)) == "127.77.0.1"
    assert address(dns_answer(query("other.example.com"), names)) == "127.77.0.2"
    assert names.get_name("127.77.0.1") == "example.com"
    assert names.get_name("127.77.0.9") is None


@pytest.mark.parametrize("name", ["localhost", "LocalHost", "x.localhost", "a.b.localhost"])
def test_localhost_is_the_loopback_address(name: str) -> None:
    names = SyntheticAddresses()
    assert address(dns_answer(query(name), names)) == "127.0.0.1"
    assert names.get_name("127.0.0.1") is None


@pytest.mark.parametrize("kind", [AAAA, TXT, 255, 65535])
def test_other_types_have_an_empty_answer(kind: int) -> None:
    names = SyntheticAddresses()
    answer = dns_answer(query("example.com", kind), names)
    assert address(answer) is None
    assert code(answer) == 0
    assert names.get_name("127.77.0.1") is None


@pytest.mark.parametrize("name", ["", "a b.com", "x\r\nhost.com", "ü.com", "a/b", "a:80", "[1]", "a@b", "\0"])
def test_invalid_names_do_not_exist(name: str) -> None:
    answer = dns_answer(query(name), SyntheticAddresses())
    assert address(answer) is None
    assert code(answer) == 3


@pytest.mark.parametrize(
    "packet",
    [b"", b"x", bytes(11), bytes(12), bytes(16), query("a.com", flags=0x8100), query("a.com", flags=0x2800),
     query("a.com", count=0), query("a.com", count=2), query("a.com")[:-1], query("a.com")[:-4], query("a.com")[:15],
     struct.pack("!6H", 1, 0x100, 1, 0, 0, 0) + b"\xc0\x0c\0\1\0\1", query("a" * 64 + ".com"), query("ab." * 90)],
)  # fmt: skip
def test_malformed_queries_get_no_response(packet: bytes) -> None:
    assert dns_answer(packet, SyntheticAddresses()) is None


def test_additional_records_are_not_echoed() -> None:
    answer = dns_answer(query("a.com", tail=b"\0\0\x29\x10\0\0\0\0\0\0\0"), SyntheticAddresses())
    assert answer is not None
    assert answer[12:].startswith(query("a.com")[12:])
    assert answer[8:12] == bytes(4)
    assert len(answer) == len(query("a.com")) + 16


@given(st.binary(max_size=600))
def test_random_packets_are_answered_or_ignored(packet: bytes) -> None:
    answer = dns_answer(packet, SyntheticAddresses())
    assert answer is None or answer[:2] == packet[:2]


@given(st.binary(min_size=1, max_size=300))
def test_random_questions_raise_nothing(question: bytes) -> None:
    dns_answer(struct.pack("!6H", 7, 0x100, 1, 0, 0, 0) + question, SyntheticAddresses())


def test_the_table_is_bounded_and_drops_the_least_recently_used() -> None:
    names = SyntheticAddresses(limit=3)
    first, second, third = (names.get_address(name) for name in ("one", "two", "three"))
    assert names.get_address("one") == first
    assert names.get_address("four") == second
    assert names.get_name(second) == "four"
    assert [names.get_name(kept) for kept in (first, third)] == ["one", "three"]
    for number in range(100):
        names.get_address(f"n{number}")
    assert len({names.get_name(reused) for reused in (first, second, third)}) == 3


def test_addresses_of_a_full_table_are_unique() -> None:
    names = SyntheticAddresses()
    addresses = {names.get_address(f"n{number}.example") for number in range(20_000)}
    assert len(addresses) == 16_384
    assert all(found.startswith("127.77.") and max(map(int, found.split("."))) < 256 for found in addresses)


class Proxy:
    """CONNECT proxy that echoes in capitals, and rejects the names in `refuse`."""

    def __init__(self) -> None:
        self.heads: list[str] = []
        self.refuse: set[str] = set()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head)
        if head.split()[1].partition(":")[0] in self.refuse:
            writer.write(b"HTTP/1.1 403 Forbidden\r\n\r\nrejected")
        else:
            writer.write(b"HTTP/1.1 200 OK\r\nX: y\r\n\r\nhello ")  # the server sends first, in the same packet
            while data := await reader.read(100):
                writer.write(data.upper())
        writer.close()
        await writer.wait_closed()


@pytest.fixture
async def proxy() -> Proxy:
    return Proxy()


@pytest.fixture
async def container(tmp_path: Path, proxy: Proxy) -> AsyncIterator[WardenClient]:
    async with open_runtime_env(FakeRuntime, tmp_path) as env:
        with closing(await env.runtime.listen(AGENT, "proxy", proxy.handle)):
            container = await env.container(ContainerSpec(AGENT, egress="proxy"))
            namespace = (await container.exec(["readlink", "/proc/self/ns/net"])).stdout.decode().strip()
            if namespace == str(Path("/proc/self/ns/net").readlink()):
                pytest.skip("the kernel allows no network namespace")
            yield container


RESOLVE = """
import socket, struct, sys
name, port, how, text = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
labels = b"".join(bytes([len(x)]) + x.encode() for x in name.split("."))
request = struct.pack("!6H", 7, 256, 1, 0, 0, 0) + labels + b"\\0\\0\\1\\0\\1"
if how == "udp":
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b"junk", ("127.0.0.1", 53))
    s.sendto(request, ("127.0.0.1", 53)); answer = s.recv(512)
else:
    s = socket.create_connection(("127.0.0.1", 53)); s.sendall(struct.pack("!H", len(request)) + request)
    answer = s.recv(512)[2:]
address = socket.inet_ntoa(answer[-4:])
c = socket.create_connection((address, port)); c.sendall(text.encode()); c.shutdown(socket.SHUT_WR)
print(address, c.makefile().read())
"""


async def fetch(container: WardenClient, name: str, port: int = 443, how: str = "udp", text: str = "world") -> str:
    result = await container.exec(["/usr/bin/python3", "-c", RESOLVE, name, str(port), how, text], timeout=20)
    assert result.exit_code == 0, result.stderr.decode()
    return result.stdout.decode().strip()


@pytest.mark.parametrize("how", ["udp", "tcp"])
async def test_a_program_without_proxy_support_reaches_hosts_by_name(
    container: WardenClient, proxy: Proxy, how: str
) -> None:
    assert await fetch(container, "Api.Example.com", 443, how) == "127.77.0.1 hello WORLD"
    assert proxy.heads == ["CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n\r\n"]


@pytest.mark.parametrize("port", [22, 80, 587, 993, 5222, 8443])
async def test_common_ports_are_relayed(container: WardenClient, proxy: Proxy, port: int) -> None:
    assert await fetch(container, "example.com", port) == "127.77.0.1 hello WORLD"
    assert proxy.heads[0].startswith(f"CONNECT example.com:{port} ")


async def test_a_rejected_name_ends_the_connection_without_data(container: WardenClient, proxy: Proxy) -> None:
    proxy.refuse = {"internal.example"}
    assert await fetch(container, "internal.example", text="") == "127.77.0.1"
    assert await fetch(container, "example.com") == "127.77.0.2 hello WORLD"


async def test_addresses_without_a_name_lead_nowhere(container: WardenClient, proxy: Proxy) -> None:
    connect = "import socket; print(socket.create_connection(('{}', 443), timeout=5).recv(10))"
    for address in ("127.77.9.9", "127.0.0.1"):
        result = await container.exec(["/usr/bin/python3", "-c", connect.format(address)])
        assert result.stdout == b"b''\n"
    raw = await container.exec(["/usr/bin/python3", "-c", connect.format("192.0.2.1")])
    assert b"Network is unreachable" in raw.stderr
    assert not proxy.heads
