"""Every kind of request at every kind of host, in flat memory: bodies, chunks, HEAD, HTTP/1.0, slow readers."""

import socket
import threading
import zlib
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.contract.hosts import (
    GATEWAY_KINDS,
    KINDS,
    PROGRAM_KINDS,
    HostExample,
    HostsEnv,
    Reply,
    hosts_process,
    parse_replies,
    running_hosts,
)  # fmt: skip

EVERY_HOST = pytest.mark.parametrize("kind", KINDS)
MIB = 1024**2
PIECE = bytes(range(256)) * 4096
MORE = 48 * MIB
"""Bytes that the server may take above what it has when idle, whatever passes through it."""


@pytest.fixture(scope="module")
async def hosts_env(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[HostsEnv]:
    async with running_hosts(tmp_path_factory.mktemp("requests") / "data") as hosts_env:
        yield hosts_env


@EVERY_HOST
async def test_small_requests_get_their_own_answers(hosts_env: HostsEnv, kind: str) -> None:
    """Each is answered, and the next one on the same connection gets its own answer."""
    site = hosts_env.sites[kind]
    last = site.head("GET {path}", "Connection: close")
    got = await hosts_env.ask(site)
    chunks = b"3;a=b\r\nabc\r\n1\r\nd\r\n0\r\nX-Trailer: 1\r\n\r\n"
    takes_bodies = kind in (*GATEWAY_KINDS, *PROGRAM_KINDS)
    for head, body in (
        (("POST {path}", "Transfer-Encoding: chunked", "Trailer: X-Trailer"), chunks),
        (("POST {path}", "Content-Length: 4"), b"abcd"),
        (("POST {path}", "Content-Length: 0"), b""),
        (("GET {path}", "Content-Length: 4"), b"abcd"),
        (("OPTIONS {path}", "Origin: http://evil.example", "Access-Control-Request-Method: GET"), b""),
        (("OPTIONS *",), b""),
        (("GET {path}?x=%20;%2f", "Range: bytes=0-3"), b""),
    ):
        first, second = parse_replies(await hosts_env.send(site.head(*head) + body + last))
        assert first.status < 500, (head, first)
        assert not takes_bodies or first.status == 200 or head == ("OPTIONS *",), (head, first)
        assert (second.status, second["content-type"]) == (200, got["content-type"]), (head, second)


@EVERY_HOST
async def test_head_has_the_headers_of_get(hosts_env: HostsEnv, kind: str) -> None:
    site = hosts_env.sites[kind]
    full = await hosts_env.ask(site)
    raw = await hosts_env.send(site.head("HEAD {path}") + site.head("GET {path}", "Connection: close"))
    head, _, rest = raw.partition(b"\r\n\r\n")
    (first,) = parse_replies(head + b"\r\n\r\n", is_head=True)
    (second,) = parse_replies(rest)
    assert (first.status, second.status) == (200, 200)
    assert first["content-type"] == full["content-type"]


@EVERY_HOST
async def test_bodies_that_wait_to_be_asked_for(hosts_env: HostsEnv, kind: str) -> None:
    """No body is asked for before the caller is known."""
    site = hosts_env.sites[kind]
    head = site.head("POST {path}", "Expect: 100-continue", "Content-Length: 4", "Connection: close")
    replies = parse_replies(await hosts_env.send(head, b"abcd"))
    assert [reply.status for reply in replies[:-1]] in ([100], [])
    assert replies[-1].status < 500
    if site.token is not None:
        stranger = site.head("POST {path}", "Expect: 100-continue", "Content-Length: 4", "Connection: close", token="x")
        assert [reply.status for reply in parse_replies(await hosts_env.send(stranger))] == [401]


@EVERY_HOST
@pytest.mark.parametrize("lines", [(), ("Connection: keep-alive",), ("Content-Length: 0",)])
async def test_http_1_0(hosts_env: HostsEnv, kind: str, lines: Sequence[str]) -> None:
    (reply,) = parse_replies(await hosts_env.send(hosts_env.sites[kind].head("GET {path} HTTP/1.0", *lines)))
    assert (reply.status, reply["transfer-encoding"]) == (200, None)
    assert reply.body


@pytest.mark.parametrize("kind", PROGRAM_KINDS)
async def test_http_1_0_and_a_response_without_a_length(hosts_env: HostsEnv, kind: str) -> None:
    number = await hosts_env.plan(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")
    (reply,) = parse_replies(
        await hosts_env.send(hosts_env.sites[kind].head("GET {path} HTTP/1.0", path=f"/raw?{number}"))
    )
    assert (reply.body, reply["transfer-encoding"], reply["connection"]) == (b"ok", None, "close")


@pytest.mark.parametrize("kind", ["storage gateway", "origin of a CID"])
async def test_ranges_are_passed_through(hosts_env: HostsEnv, kind: str) -> None:
    reply = await hosts_env.ask(hosts_env.sites[kind], "GET {path}", "Range: bytes=8-9")
    assert (reply.status, reply.body, reply["content-range"]) == (206, b"of", "bytes 8-9/28")


# Large bodies, through a server in a process of its own


class MeasuredServer:
    def __init__(self, pid: int, hosts_env: HostsEnv) -> None:
        self.pid, self.hosts_env = pid, hosts_env
        self.idle = self.memory("VmRSS")

    def memory(self, field: str) -> int:
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field}:"))

    def start_measuring(self) -> None:
        self.idle = self.memory("VmRSS")
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")  # the peak is measured from here on

    @property
    def growth(self) -> int:
        return self.memory("VmHWM") - self.idle

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.hosts_env.port), timeout=60)

    def upload(self, site: HostExample, path: str, size: int, line: str = "POST {path}") -> Reply:
        """Send a body in chunks of 1 MiB."""
        with self.connect() as sock:
            sock.sendall(site.head(line, "Transfer-Encoding: chunked", "Connection: close", path=path))
            for _ in range(size // len(PIECE)):
                sock.sendall(b"%x\r\n" % len(PIECE))
                sock.sendall(PIECE)
                sock.sendall(b"\r\n")
            sock.sendall(b"0\r\n\r\n")
            (reply,) = parse_replies(b"".join(iter(lambda: sock.recv(1 << 16), b"")))
        return reply

    def download(self, site: HostExample, path: str) -> int:
        """Return the size of all that comes."""
        with self.connect() as sock:
            sock.sendall(site.head("GET {path}", "Connection: close", path=path))
            buffer, size = bytearray(1 << 20), 0
            while count := sock.recv_into(buffer):
                size += count
        return size


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MeasuredServer]:
    with hosts_process(tmp_path_factory.mktemp("large") / "data") as (pid, hosts_env):
        server = MeasuredServer(pid, hosts_env)
        for kind in PROGRAM_KINDS:
            server.upload(hosts_env.sites[kind], "/echo", MIB)
        yield server


@pytest.mark.parametrize("kind", PROGRAM_KINDS)
def test_large_bodies_take_little_memory(server: MeasuredServer, kind: str) -> None:
    size = 1024 * MIB if kind == "protected domain" else 64 * MIB
    crc = 0
    for _ in range(size // MIB):
        crc = zlib.crc32(PIECE, crc)
    server.start_measuring()
    told = server.upload(server.hosts_env.sites[kind], "/echo", size).json()
    assert (told["size"], told["crc"]) == (size, crc)
    assert server.download(server.hosts_env.sites[kind], f"/big?{size}") > size
    assert server.growth < MORE, f"{server.growth / MIB:.1f} MiB"


def test_large_files_take_little_memory(server: MeasuredServer) -> None:
    site = server.hosts_env.sites["agent's platform paths"]
    path = "/v0/files/content?path=large"
    server.start_measuring()
    assert server.upload(site, path, 64 * MIB, "PUT {path}").status == 200
    assert server.download(site, path) > 64 * MIB
    assert server.growth < MORE, f"{server.growth / MIB:.1f} MiB"


def test_slow_readers_cost_one_buffer_each(server: MeasuredServer) -> None:
    """Each asks for an endless response and reads none of it."""
    server.start_measuring()
    with ExitStack() as stack:
        for number in range(60):
            kind = ("open route", "protected route", "open domain", "protected domain")[number % 4]
            sock = stack.enter_context(server.connect())
            sock.sendall(server.hosts_env.sites[kind].head("GET {path}", path="/flood"))
            assert sock.recv(1)
        reader = threading.Thread(
            target=server.download, args=(server.hosts_env.sites["open route"], f"/big?{32 * MIB}")
        )
        reader.start()  # who reads is served meanwhile
        reader.join(60)
        assert not reader.is_alive()
        assert server.growth < MORE, f"{server.growth / MIB:.1f} MiB"
