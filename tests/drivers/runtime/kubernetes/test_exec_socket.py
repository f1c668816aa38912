"""Commands over WebSockets, with a server that a test writes."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from socket import AF_INET, SHUT_WR, SOCK_STREAM, fromfd
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import pytest
import uvloop
from websockets.asyncio.server import ServerConnection, serve
from websockets.frames import Frame, Opcode

from roost.core.sensitive import Sensitive
from roost.drivers.runtime.kubernetes import exec_socket as module
from roost.drivers.runtime.kubernetes.api import KubernetesApi
from roost.drivers.runtime.kubernetes.credentials import ClusterAccess, ClusterCredentials
from roost.drivers.runtime.kubernetes.errors import (
    KubernetesForbidden,
    KubernetesRefused,
    KubernetesUnauthorized,
    KubernetesUnreachable,
)
from roost.drivers.runtime.kubernetes.exec_socket import ExecFailed, ExecTransport, open_exec
from tests.drivers.runtime.kubernetes.api_server import PODS, answer_with, make_status, refuse_with, serve_answers
from tests.drivers.runtime.kubernetes.authority import Authority

pytestmark = pytest.mark.anyio
POD = f"{PODS}/ada"
V5, V4 = "v5.channel.k8s.io", "v4.channel.k8s.io"
SUCCESS = b"\x03" + json.dumps({"metadata": {}, "status": "Success"}).encode()


@asynccontextmanager
async def serve_exec(
    handle: Callable[[ServerConnection], Awaitable[None]], *versions: str
) -> AsyncIterator[KubernetesApi]:
    subprotocols: Any = versions or (V5, V4)
    async with serve(handle, "127.0.0.1", 0, subprotocols=subprotocols, compression=None) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        access = ClusterAccess(f"http://127.0.0.1:{port}", "agents", ClusterCredentials(token=Sensitive(b"secret")))
        api = KubernetesApi(access, "1.2.3")
        yield api
        await api.close()


def transport_of(writer: asyncio.StreamWriter) -> ExecTransport:
    return cast("ExecTransport", writer.transport)


async def test_a_command_has_its_input_and_output_as_a_stream() -> None:
    heads: list[Any] = []

    async def echo(socket: ServerConnection) -> None:
        heads.append(socket.request)
        for channel in (1, 2, 3):
            await socket.send(bytes((channel,)))  # as the API server begins
        async for message in socket:
            if message == b"\xff\x00":
                break
            assert isinstance(message, bytes)
            assert message[0] == 0
            await socket.send(b"\x01" + message[1:])
        await socket.send(SUCCESS)

    data = bytes(range(256)) * 4096
    async with serve_exec(echo) as api:
        reader, writer = await open_exec(api, POD, ["cat", "a b"], "agent")
        writer.write(data)
        assert await reader.readexactly(len(data)) == data
        writer.write_eof()
        assert await reader.read() == b""
        assert transport_of(writer).failure is None
    parts = urlsplit(heads[0].path)
    query = {
        "command": ["cat", "a b"],
        "container": ["agent"],
        "stdin": ["true"],
        "stdout": ["true"],
        "stderr": ["true"],
    }
    assert (parts.path, parse_qs(parts.query)) == (f"{POD}/exec", query)
    assert heads[0].headers["Authorization"] == "Bearer secret"
    assert heads[0].headers["User-Agent"] == "roost/1.2.3"


async def test_version_4_carries_streams_and_cannot_close_the_input() -> None:
    async def hear(socket: ServerConnection) -> None:
        await socket.send(b"\x01" + cast("bytes", await socket.recv())[1:])
        await socket.wait_closed()

    async with serve_exec(hear, V4) as api:
        reader, writer = await open_exec(api, POD, ["cat"])
        assert not writer.can_write_eof()
        with pytest.raises(NotImplementedError):
            writer.write_eof()
        writer.write(b"here")
        assert await reader.readexactly(4) == b"here"
        writer.close()
        await writer.wait_closed()
        assert transport_of(writer).failure is None


async def test_fragments_are_one_message() -> None:
    async def send(socket: ServerConnection) -> None:
        await socket.send([b"", b"\x01ab", b"cd", b""])
        await socket.send([b"\x02", b"text"])
        await socket.send([SUCCESS[:5], SUCCESS[5:]])

    async with serve_exec(send) as api:
        reader, writer = await open_exec(api, POD, ["true"])
        assert await reader.read() == b"abcd"
        assert transport_of(writer).failure is None


async def test_a_failed_command_ends_its_output_and_says_why() -> None:
    async def fail(socket: ServerConnection) -> None:
        await socket.send(b"\x01partial")
        for _ in range(100):
            await socket.send(b"\x02" + b"x" * 100)
        await socket.send(b"\x02no such\nfile")
        await socket.send(b"\x03" + json.dumps(make_status(500, "NonZeroExitCode", "exit code 2")).encode())
        await socket.wait_closed()

    async with serve_exec(fail) as api:
        reader, writer = await open_exec(api, POD, ["false"])
        assert await reader.read() == b"partial"
        failure = transport_of(writer).failure
        assert isinstance(failure, ExecFailed)
        assert failure.message.startswith("A command in a container failed: exit code 2: xxx")
        assert len(failure.message) < 600


@pytest.mark.parametrize("status", [b"{", b"[]", b"\xff"])
async def test_a_status_that_is_none_is_an_error(status: bytes) -> None:
    async def send(socket: ServerConnection) -> None:
        await socket.send(b"\x03" + status)

    async with serve_exec(send) as api:
        reader, _ = await open_exec(api, POD, ["true"])
        with pytest.raises(KubernetesUnreachable):
            await reader.read()


async def test_a_stream_that_is_cut_is_an_error() -> None:
    async def cut(socket: ServerConnection) -> None:
        await socket.recv()
        socket.transport.abort()

    async with serve_exec(cut) as api:
        reader, writer = await open_exec(api, POD, ["cat"])
        writer.write(b"x")
        with pytest.raises(KubernetesUnreachable, match="broke off"):
            await reader.read()


async def test_a_closing_frame_without_a_status_is_an_error() -> None:
    async def end(socket: ServerConnection) -> None:
        await socket.close(1011, "container not found")

    async with serve_exec(end) as api:
        reader, _ = await open_exec(api, POD, ["cat"])
        with pytest.raises(KubernetesUnreachable, match="container not found"):
            await reader.read()


async def test_a_message_that_is_too_long_ends_the_stream() -> None:
    async def flood(socket: ServerConnection) -> None:
        await socket.send(b"\x01" * (module._MESSAGE_BYTES + 1))
        await socket.wait_closed()

    async with serve_exec(flood) as api:
        reader, _ = await open_exec(api, POD, ["cat"])
        with pytest.raises(KubernetesUnreachable, match="broke off"):
            await reader.read()


async def test_a_reader_that_waits_makes_the_command_wait() -> None:
    total, sent = 64 << 20, 0

    async def flood(socket: ServerConnection) -> None:
        nonlocal sent
        while sent < total:
            await socket.send(b"\x01" + b"x" * 65536)
            sent += 65536
        await socket.send(SUCCESS)

    async with serve_exec(flood) as api:
        reader, writer = await open_exec(api, POD, ["yes"])
        before = -1
        while sent != before:  # until nothing more is taken
            before = sent
            for _ in range(1000):
                await asyncio.sleep(0)
        assert sent < total
        assert len(reader._buffer) < 1 << 20  # type: ignore[attr-defined]
        received = 0
        while part := await reader.read(1 << 20):
            received += len(part)
        assert received == total
        writer.close()


def test_a_slow_reader_receives_all_that_a_closed_connection_held(tmp_path: Path) -> None:
    uvloop.run(_read_slowly(tmp_path))  # its TLS transports lose data, those of asyncio do not


async def _read_slowly(folder: Path) -> None:
    authority, paused, closed = Authority(), asyncio.Event(), asyncio.Event()
    part = b"\x01" + b"x" * 50_000

    async def send(socket: ServerConnection) -> None:
        for _ in range(4):  # more than a reader holds
            await socket.send(part)
        await paused.wait()
        await socket.send(part)
        await socket.send(SUCCESS)
        while socket.transport.get_write_buffer_size():
            await asyncio.sleep(0)
        with fromfd(socket.transport.get_extra_info("socket").fileno(), AF_INET, SOCK_STREAM) as connection:
            connection.shutdown(SHUT_WR)
        closed.set()

    context: Any = authority.make_context(folder, "kubernetes")
    async with serve(send, "127.0.0.1", 0, subprotocols=cast("Any", [V5]), compression=None, ssl=context) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        credentials = ClusterCredentials(authority=Sensitive(authority.pem))
        access = ClusterAccess(f"https://127.0.0.1:{port}", "agents", credentials, "kubernetes")
        reader, writer = await open_exec(KubernetesApi(access, "1"), POD, ["cat"])
        while not reader._paused:  # type: ignore[attr-defined]
            await asyncio.sleep(0)
        paused.set()
        await closed.wait()
        for _ in range(100):  # in which the end would be noticed
            await asyncio.sleep(0)
        assert len(await reader.read()) == 5 * 50_000
        assert transport_of(writer).failure is None


async def test_a_server_with_another_name_is_not_trusted(tmp_path: Path) -> None:
    authority = Authority()

    async def hear(socket: ServerConnection) -> None:
        await socket.wait_closed()

    context: Any = authority.make_context(tmp_path, "kubernetes")
    async with serve(hear, "127.0.0.1", 0, ssl=context) as server:
        url = f"https://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"
        credentials = ClusterCredentials(authority=Sensitive(authority.pem))
        with pytest.raises(KubernetesUnreachable, match="certificate verify failed"):
            await open_exec(KubernetesApi(ClusterAccess(url, "agents", credentials), "1"), POD, ["cat"])


async def test_a_command_that_reads_nothing_makes_the_writer_wait() -> None:
    free = asyncio.Event()
    received = 0

    async def count(socket: ServerConnection) -> None:
        nonlocal received
        await free.wait()
        async for message in socket:
            received += len(message) - 1
            if message == b"\xff\x00":
                await socket.send(SUCCESS)
                return

    async with serve_exec(count) as api:
        reader, writer = await open_exec(api, POD, ["cat"])
        written = 0
        while not writer.transport.get_write_buffer_size():  # until the socket takes no more
            writer.write(b"x" * 65536)
            written += 65536
            await asyncio.sleep(0)
        while not (drain := asyncio.ensure_future(writer.drain())).done():
            writer.write(b"x" * 65536)
            written += 65536
            await asyncio.sleep(0)
            if not drain.done():
                break
        assert writer.transport.get_write_buffer_size() < 1 << 20
        free.set()
        await drain
        writer.write_eof()
        assert await reader.read() == b""
        assert received == written + 1


@pytest.mark.parametrize(
    ("answer", "kind", "text"),
    [
        (refuse_with(403, "Forbidden", "no pods/exec"), KubernetesForbidden, "no pods/exec"),
        (refuse_with(400, "BadRequest", "not running"), KubernetesRefused, "not running"),
        (answer_with(502, b"<html>"), KubernetesRefused, "status 502"),
        (answer_with(200, {}), KubernetesRefused, "status 200"),
        (b"SSH-2.0-x\r\n\r\n", KubernetesUnreachable, "no stream"),
        (b"", KubernetesUnreachable, "no stream"),
    ],
)
async def test_a_refused_stream_has_the_servers_reason(answer: bytes, kind: type[Exception], text: str) -> None:
    async with serve_answers(answer) as (api, _):
        with pytest.raises(kind, match=text):
            await open_exec(api, POD, ["true"])


async def test_a_replaced_token_is_read_after_a_refusal() -> None:
    async with serve_answers(*[refuse_with(401, "Unauthorized")] * 2) as (api, server):
        with pytest.raises(KubernetesUnauthorized):
            await open_exec(api, POD, ["true"])
        assert len(server.requests) == 2


async def test_a_server_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_OPEN_SECONDS", 0.05)
    closed = asyncio.Event()

    async def hang(writer: asyncio.StreamWriter) -> None:
        await closed.wait()

    async with serve_answers(hang) as (api, _):
        with pytest.raises(KubernetesUnreachable, match="no stream within"):
            await open_exec(api, POD, ["true"])
        closed.set()


async def test_no_server_is_unreachable() -> None:
    async with serve_answers() as (api, _):
        pass
    with pytest.raises(KubernetesUnreachable):
        await open_exec(api, POD, ["true"])


async def test_an_aborted_stream_loses_its_protocol() -> None:
    async def hear(socket: ServerConnection) -> None:
        await socket.wait_closed()

    async with serve_exec(hear) as api:
        reader, writer = await open_exec(api, POD, ["cat"])
        writer.transport.abort()
        assert writer.transport.is_closing()
        assert await reader.read() == b""
        writer.write(b"late")
        assert transport_of(writer).failure is None


async def test_a_server_that_reads_no_pongs_is_cut_off() -> None:
    ended = asyncio.Event()

    async def flood(socket: ServerConnection) -> None:
        socket.transport.pause_reading()  # type: ignore[attr-defined]
        ping = Frame(Opcode.PING, b"x" * 125).serialize(mask=False) * 1000
        while not socket.transport.is_closing() and not ended.is_set():
            socket.transport.write(ping)
            await asyncio.sleep(0)

    async with serve_exec(flood) as api:
        reader, _ = await open_exec(api, POD, ["cat"])
        with pytest.raises(KubernetesUnreachable, match="broke off"):
            await reader.read()
        ended.set()
