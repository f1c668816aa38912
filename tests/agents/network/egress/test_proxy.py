import asyncio
import json
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from ipaddress import ip_network

import pytest

from roost.agents.network.egress.proxy import EgressLimits
from roost.drivers.runtime.contract import Stream
from roost.net.policy import EgressPolicy
from tests.agents.network.egress.proxying import ESTABLISHED, Proxy, running_proxy
from tests.net.loopback import OPEN, FakeResolver, OriginServer, serving, until


@pytest.fixture(params=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": request.param == "uvloop"}


async def curl(proxy: Proxy, *arguments: str, stdin: bytes = b"") -> tuple[int, bytes]:
    """Run curl; return its exit code and output."""
    process = await asyncio.create_subprocess_exec(
        "curl", "-qsS", "--max-time", "20", "--noproxy", "", "-x", f"http://127.0.0.1:{proxy.port}", *arguments,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    output, _ = await process.communicate(stdin)
    return process.returncode or 0, output


@asynccontextmanager
async def connected(proxy: Proxy) -> AsyncIterator[Stream]:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


@asynccontextmanager
async def tunnel(proxy: Proxy, port: int) -> AsyncIterator[Stream]:
    async with connected(proxy) as (reader, writer):
        writer.write(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % port)
        assert await reader.readuntil(b"\r\n\r\n") == ESTABLISHED
        yield reader, writer


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()
    writer.write(b" and good-bye")


async def test_curl_gets_and_posts() -> None:
    origin, names = OriginServer(), FakeResolver({"x.example": ["127.0.0.1"]})
    async with serving(origin, limit=1 << 20) as port, running_proxy(names=names) as proxy:
        assert await curl(proxy, f"http://x.example:{port}/path?q=1") == (0, b"hello")
        assert await curl(proxy, "-d", "a=b", f"http://x.example:{port}/form") == (0, b"hello")
        big = b"0123456789abcdef" * 20_000
        upload = ("-T", "-", "-H", "Transfer-Encoding: chunked", "-H", "Expect:")
        assert await curl(proxy, *upload, f"http://x.example:{port}/up", stdin=big) == (0, b"hello")
        entries = [await proxy.entry(n) for n in (1, 2, 3)]
    assert origin.heads[0].startswith(b"GET /path?q=1 HTTP/1.1\r\nHost: x.example:%d\r\n" % port)
    assert b"proxy" not in origin.heads[0].lower()
    assert origin.bodies[0] == b"a=b"
    assert unchunked(origin.bodies[1]) == big
    assert all(entry["decision"] == "allowed" and entry["reason"] is None for entry in entries)
    assert [entry["up"] for entry in entries] == [0, 3, len(big)]
    assert entries[0]["down"] == len(origin.reply)


def unchunked(body: bytes) -> bytes:
    content = bytearray()
    while body:
        size, _, rest = body.partition(b"\r\n")
        content += rest[: int(size, 16)]
        assert rest[int(size, 16) :][:2] == b"\r\n"
        body = rest[int(size, 16) + 2 :]
    return bytes(content)


async def test_curl_through_a_tunnel() -> None:
    async with (
        serving(OriginServer()) as port,
        running_proxy(names=FakeResolver({"x.example": ["127.0.0.1"]})) as proxy,
    ):
        assert await curl(proxy, "-p", f"http://x.example:{port}/") == (0, b"hello")


async def test_each_hop_of_a_redirect_is_checked() -> None:
    inside = OriginServer()
    async with serving(inside, "127.0.0.2") as inner_port:
        away = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.2:%d/latest/meta-data\r\nContent-Length: 0\r\n\r\n"
        policy = EgressPolicy(allow_private=[ip_network("127.0.0.1/32")])
        async with serving(OriginServer(away % inner_port)) as port, running_proxy(policy) as proxy:
            code, output = await curl(proxy, "-L", "-w", "%{http_code}", f"http://127.0.0.1:{port}/")
            second = await proxy.entry(2)
    assert code == 0
    assert output == b"127.0.0.2 is refused: it leads to an address that is not on the public internet\n403"
    assert (second["decision"], second["reason"], second["host"]) == ("refused", "address", "127.0.0.2")
    assert not inside.heads


async def test_a_tunnel_carries_both_directions_and_half_closes() -> None:
    async with serving(echo) as port, running_proxy() as proxy, tunnel(proxy, port) as (reader, writer):
        for word in (b"one", b"two"):
            writer.write(word)
            assert await reader.readexactly(3) == word
        writer.write(b"three")
        writer.write_eof()
        assert await reader.read() == b"three and good-bye"
        writer.close()
        entry = await proxy.entry()
    assert entry["decision"] == "allowed"
    assert (entry["agent"], entry["host"], entry["port"]) == ("a1", "127.0.0.1", port)
    assert (entry["up"], entry["down"]) == (11, 24)
    assert entry["seconds"] >= 0


async def test_a_tunnel_whose_far_end_closes_first_still_takes_what_the_client_sends() -> None:
    got = bytearray()

    async def quiet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write_eof()
        got.extend(await reader.read())
        writer.close()

    async with serving(quiet) as port, running_proxy() as proxy, tunnel(proxy, port) as (reader, writer):
        assert await reader.read() == b""
        writer.write(b"late")
        writer.write_eof()
        await until(lambda: bytes(got) == b"late")
        assert (await proxy.entry())["reason"] is None
        writer.close()


async def test_bytes_that_follow_the_head_at_once_are_carried() -> None:
    async with serving(echo) as port, running_proxy() as proxy, connected(proxy) as (reader, writer):
        writer.write(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\nearly" % port)
        writer.write_eof()
        assert await reader.read() == ESTABLISHED + b"early and good-bye"
        writer.close()


async def test_a_slow_reader_slows_the_sender_and_nothing_piles_up() -> None:
    sent = 0

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        while True:
            writer.write(bytes(1 << 16))
            await writer.drain()
            sent += 1 << 16

    async with serving(flood) as port, running_proxy() as proxy, tunnel(proxy, port) as (_, writer):
        writer.transport.pause_reading()  # pyright: ignore[reportAttributeAccessIssue] - TCP can
        await until(lambda: sent > 0)
        before = 0
        while before != sent:  # grows until every buffer on the path is full
            before = sent
            await asyncio.sleep(0.3)
        assert sent < 32 << 20
        writer.transport.abort()
        assert (await proxy.entry())["reason"] == "broken"


@pytest.mark.parametrize("framing", [b"Content-Length: 99999999999", b"Transfer-Encoding: chunked"])
async def test_a_slow_upstream_slows_an_upload(framing: bytes) -> None:
    async def unwilling(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.Event().wait()

    sent = 0
    async with serving(unwilling) as port, running_proxy() as proxy, connected(proxy) as (_, writer):
        writer.write(b"PUT http://127.0.0.1:%d/ HTTP/1.1\r\n%b\r\n\r\nfffffff\r\n" % (port, framing))
        with suppress(TimeoutError):  # no buffer has space
            while sent < 64 << 20:
                writer.write(bytes(1 << 16))
                await asyncio.wait_for(writer.drain(), 0.3)
                sent += 1 << 16
    assert 0 < sent < 32 << 20


@pytest.mark.parametrize(
    ("authority", "status", "reason"),
    [
        ("127.0.0.1:{port}", 403, "address"),
        ("localhost:{port}", 403, "address"),
        ("2130706433:{port}", 403, "address"),
        ("mixed.example:{port}", 403, "address"),
        ("evil.example:443", 403, "host"),
        ("mixed.example:25", 403, "port"),
        ("nobody.example:443", 502, "unresolved"),
        ("x" * 64 + ":443", 400, "bad_request"),
    ],
)
@pytest.mark.parametrize("form", ["CONNECT {} HTTP/1.1\r\n\r\n", "GET http://{}/secret?token=1 HTTP/1.1\r\n\r\n"])
async def test_refusals_have_a_status_and_a_reason(authority: str, status: int, reason: str, form: str) -> None:
    origin = OriginServer()
    names = FakeResolver({"localhost": ["127.0.0.1", "::1"], "mixed.example": ["8.8.8.8", "127.0.0.1"]})
    async with serving(origin) as port, running_proxy(EgressPolicy(deny_hosts=["evil.example"]), names) as proxy:
        target = authority.format(port=port)
        answer = await proxy.send_raw(form.format(target).encode())
        entry = await proxy.entry()
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert (entry["reason"], entry["decision"]) == (reason, "refused" if status == 403 else "failed")
    assert "secret" not in json.dumps(entry)
    if status != 400:
        assert target.rpartition(":")[0].replace("2130706433", "127.0.0.1").encode() in answer
    assert not origin.heads


async def test_an_unreachable_host_is_a_bad_gateway() -> None:
    async with running_proxy(names=FakeResolver({"down.example": ["127.0.0.66"]})) as proxy:
        answer = await proxy.send_raw(b"CONNECT down.example:9 HTTP/1.1\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert answer.endswith(b"\r\n\r\ndown.example could not be reached\n")


SMUGGLED = b"0\r\n\r\nGET /admin HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize(
    "fields",
    [
        b"Content-Length: 4\r\nTransfer-Encoding: chunked",
        b"Content-Length: 4\r\nContent-Length: 40",
        b"Transfer-Encoding: chunked, identity",
        b"X: 1\r\n Content-Length: 4",
        b"X: 1\nContent-Length: 4",
    ],
)
async def test_a_smuggled_request_never_leaves(fields: bytes) -> None:
    origin = OriginServer()
    async with serving(origin) as port, running_proxy() as proxy:
        answer = await proxy.send_raw(b"POST http://127.0.0.1:%d/ HTTP/1.1\r\n%b\r\n\r\n%b" % (port, fields, SMUGGLED))
        assert (await proxy.entry())["reason"] == "bad_request"
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert not origin.heads


async def test_bytes_after_a_body_are_not_forwarded() -> None:
    seen = bytearray()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.extend(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nbye")
        writer.write_eof()
        seen.extend(await reader.read())
        writer.close()

    chunked = (
        b"POST http://127.0.0.1:%d/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\nX: y\r\n\r\n"
    )
    for request, body in (
        (b"POST http://127.0.0.1:%d/ HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", b"abc"),
        (chunked, b"3\r\nabc\r\n0\r\n\r\n"),
        (b"GET http://127.0.0.1:%d/ HTTP/1.1\r\n\r\n", b""),
    ):
        seen.clear()
        async with serving(listen) as port, running_proxy() as proxy:
            assert (await proxy.send_raw(request % port + b"GET /admin HTTP/1.1\r\n\r\n")).endswith(b"bye")
            await proxy.entry()
            await until(lambda body=body: bytes(seen).partition(b"\r\n\r\n")[2] == body)


@pytest.mark.parametrize(
    "body",
    [
        b"xyz\r\n",
        b"-1\r\n",
        b"0x3\r\nabc\r\n",
        b"3\nabc\r\n0\r\n\r\n",
        b"3\r\nabcd\r\n",
        b"1" * 20 + b"\r\n",
        b"3" + b";" * 5000 + b"\r\n",
        b"0\r\n" + b"X: y\r\n" * 100 + b"\r\n",
    ],
)
async def test_a_malformed_chunk_ends_the_request(body: bytes) -> None:
    async with serving(OriginServer()) as port, running_proxy() as proxy:
        head = b"POST http://127.0.0.1:%d/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" % port
        assert (await proxy.send_raw(head + body)).startswith(b"HTTP/1.1 400 ")
        assert (await proxy.entry())["reason"] == "bad_request"


async def test_a_client_that_leaves_in_its_body_or_while_it_waits_takes_the_upstream_along() -> None:
    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        arrived.append(head)
        await reader.read()
        left.append(head)
        writer.close()

    for request in (
        b"GET http://127.0.0.1:%d/ HTTP/1.1\r\n\r\n",
        b"PUT http://127.0.0.1:%d/ HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc",
    ):
        arrived: list[bytes] = []
        left: list[bytes] = []
        async with serving(wait) as port, running_proxy() as proxy, connected(proxy) as (_, writer):
            writer.write(request % port)
            await until(lambda seen=arrived: bool(seen))
            writer.close()
            await until(lambda seen=left: bool(seen))
            assert (await proxy.entry())["reason"] == "broken"


async def test_an_answer_before_the_end_of_the_body_is_delivered() -> None:
    early = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(early)
        writer.write_eof()
        await reader.read()
        writer.close()

    async with serving(refuse) as port, running_proxy() as proxy:
        assert (
            await proxy.send_raw(b"PUT http://127.0.0.1:%d/ HTTP/1.1\r\nContent-Length: 99999\r\n\r\nab" % port)
            == early
        )


async def test_a_head_that_is_slow_or_large_is_answered_and_closed() -> None:
    async with running_proxy(limits=EgressLimits(head=0.1, close=0.1)) as proxy:
        assert (await proxy.send_raw(b"CONNECT a.example:443 HT")).startswith(b"HTTP/1.1 408 ")
        assert (await proxy.send_raw(b"")).startswith(b"HTTP/1.1 408 ")
        large = b"GET http://a.example/ HTTP/1.1\r\nX: " + b"x" * 40_000
        assert (await proxy.send_raw(large + b"\r\n\r\n")).startswith(b"HTTP/1.1 431 ")
        assert (await proxy.send_raw(large * 10)).startswith(b"HTTP/1.1 431 ")
        entries = [await proxy.entry(n) for n in range(1, 5)]
    assert [entry["reason"] for entry in entries] == ["head_too_slow"] * 2 + ["head_too_large"] * 2


async def test_an_idle_tunnel_ends_and_a_busy_one_does_not() -> None:
    async with (
        serving(echo) as port,
        running_proxy(limits=EgressLimits(idle=0.5)) as proxy,
        tunnel(proxy, port) as (idle, _),
        tunnel(proxy, port) as (reader, writer),
    ):
        silent = asyncio.create_task(idle.read())
        while not silent.done():
            writer.write(b".")
            assert await reader.readexactly(1) == b"."
        assert (await proxy.entry())["reason"] == "idle"
        writer.write_eof()
        assert await reader.read() == b" and good-bye"


async def test_an_upstream_that_never_answers_is_a_gateway_timeout() -> None:
    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with serving(never) as port, running_proxy(limits=EgressLimits(idle=0.1)) as proxy:
        answer = await proxy.send_raw(b"GET http://127.0.0.1:%d/ HTTP/1.1\r\n\r\n" % port)
    assert answer.startswith(b"HTTP/1.1 504 ")


async def test_an_upstream_that_leaves_without_an_answer_is_a_bad_gateway() -> None:
    async def leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")

    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        linger_none = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_none)
        writer.transport.abort()

    for handler in (leave, reset):
        async with serving(handler) as port, running_proxy() as proxy:
            answer = await proxy.send_raw(b"GET http://127.0.0.1:%d/ HTTP/1.1\r\n\r\n" % port)
            assert answer.startswith(b"HTTP/1.1 502 ")
            entry = await proxy.entry()
            assert (entry["decision"], entry["reason"]) == ("allowed", "unreachable")


async def test_the_connections_of_an_agent_are_limited_and_come_free_again() -> None:
    async with serving(echo) as port, running_proxy(limits=EgressLimits(connections=8)) as proxy:
        async with AsyncExitStack() as stack:
            for _ in range(8):
                await stack.enter_async_context(tunnel(proxy, port))
            answer = await proxy.send_raw(b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\n" % port)
            assert answer.startswith(b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 1\r\n")
            assert (await proxy.entry())["reason"] == "too_many_connections"
        await until(lambda: len(proxy.entries) == 9)
        async with tunnel(proxy, port):
            pass


async def test_connections_that_say_nothing_and_leave_are_logged_without_a_host() -> None:
    async with running_proxy(OPEN) as proxy, connected(proxy) as (_, writer):
        writer.close()
        entry = await proxy.entry()
    assert (entry["host"], entry["decision"], entry["reason"]) == (None, "failed", "broken")
