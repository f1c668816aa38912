"""RPC with a stub gateway on a real WebSocket server."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve

from roost.core.sensitive import Sensitive
from roost.drivers.engine.contract import Dial, EngineFailed
from roost.drivers.engine.openclaw.rpc import OpenClawRpc, RpcRefused, StreamWebSocket
from roost.drivers.runtime.contract import Stream
from roost.warden_client.errors import ContainerNotRunning

TOKEN = Sensitive("internal-token")
Answer = Callable[["Gateway", dict[str, Any]], Coroutine[Any, Any, None]]


class Gateway:
    """A connection of the stub gateway."""

    def __init__(self, connection: ServerConnection, answer: Answer) -> None:
        self.connection = connection
        self.answer = answer
        self.tasks: set[asyncio.Task[None]] = set()

    async def send(self, message: object) -> None:
        await self.connection.send(json.dumps(message))

    async def result(self, request: dict[str, Any], payload: object) -> None:
        await self.send({"type": "res", "id": request["id"], "ok": True, "payload": payload})

    async def refuse(self, request: dict[str, Any], **error: object) -> None:
        await self.send({"type": "res", "id": request["id"], "ok": False, "error": error})

    async def event(self, name: str, payload: object = None) -> None:
        await self.send({"type": "event", "event": name, "payload": payload})

    async def run(self) -> None:
        await self.event("connect.challenge", {"nonce": "n", "ts": 1})
        async for text in self.connection:
            request = json.loads(text)
            if request["method"] != "connect":
                self.tasks.add(asyncio.create_task(self.answer(self, request)))
            elif request["params"]["auth"]["password"] == TOKEN.reveal():
                await self.result(request, {"type": "hello-ok", "server": {"version": "2026.9.6"}})
            else:
                await self.refuse(request, code="INVALID_REQUEST", message="unauthorized", details={"code": "MISMATCH"})


@asynccontextmanager
async def gateway(answer: Answer) -> AsyncIterator[Dial]:
    async def handle(connection: ServerConnection) -> None:
        await Gateway(connection, answer).run()

    async with serve(handle, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]

        async def dial(_port: int) -> Stream:
            return await asyncio.open_connection("127.0.0.1", port)

        yield dial


async def echo(gateway: Gateway, request: dict[str, Any]) -> None:
    await gateway.result(request, request["params"])


async def test_it_connects_and_calls() -> None:
    async with gateway(echo) as dial, OpenClawRpc.open(dial, TOKEN) as rpc:
        assert rpc.version == "2026.9.6"
        assert await rpc.call("x", {"a": [1]}) == {"a": [1]}
        assert await rpc.call("x") == {}


async def test_a_wrong_token_is_refused_with_the_gateways_message() -> None:
    async with gateway(echo) as dial:
        with pytest.raises(RpcRefused) as refused:
            async with OpenClawRpc.open(dial, Sensitive("wrong")):
                pass
    assert (refused.value.message, refused.value.code) == ("unauthorized", "INVALID_REQUEST")
    assert refused.value.details == {"code": "MISMATCH"}


async def test_calls_at_once_get_their_own_answers_in_any_order() -> None:
    held: list[dict[str, Any]] = []

    async def reversing(gateway: Gateway, request: dict[str, Any]) -> None:
        held.append(request)
        if len(held) == 50:
            for each in reversed(held):
                await gateway.result(each, each["params"]["n"])

    async with gateway(reversing) as dial, OpenClawRpc.open(dial, TOKEN) as rpc:
        assert await asyncio.gather(*(rpc.call("x", {"n": n}) for n in range(50))) == list(range(50))


async def test_a_call_is_repeated_while_the_gateway_is_starting() -> None:
    calls = 0

    async def later(gateway: Gateway, request: dict[str, Any]) -> None:
        nonlocal calls
        calls += 1
        if calls < 3:
            await gateway.refuse(request, code="UNAVAILABLE", message="starting", retryAfterMs=1)
        else:
            await gateway.result(request, calls)

    async with gateway(later) as dial, OpenClawRpc.open(dial, TOKEN) as rpc:
        assert await rpc.call("x") == 3


async def test_retries_end_at_the_timeout() -> None:
    async def never(gateway: Gateway, request: dict[str, Any]) -> None:
        await gateway.refuse(request, code="UNAVAILABLE", message="starting", details={"retryAfterMs": 60_000})

    async with gateway(never) as dial, OpenClawRpc.open(dial, TOKEN) as rpc:
        with pytest.raises(RpcRefused, match="starting"):
            await rpc.call("x", timeout=0.5)


async def test_a_missing_answer_is_a_timeout() -> None:
    async def silent(gateway: Gateway, request: dict[str, Any]) -> None:
        if request["method"] == "late":
            await gateway.result(request, "still there")

    async with gateway(silent) as dial, OpenClawRpc.open(dial, TOKEN) as rpc:
        with pytest.raises(EngineFailed, match="did not answer x in time"):
            await rpc.call("x", timeout=0.05)
        assert await rpc.call("late") == "still there"


async def test_the_end_of_the_connection_ends_calls_with_the_reason() -> None:
    async def rotate(gateway: Gateway, request: dict[str, Any]) -> None:
        await gateway.connection.close(4001, "gateway auth changed")

    async with gateway(rotate) as dial, OpenClawRpc.open(dial, TOKEN) as rpc:
        with pytest.raises(EngineFailed, match="4001: gateway auth changed"):
            await rpc.call("x")
        with pytest.raises(EngineFailed, match="4001"):
            await rpc.call("x")


@pytest.mark.parametrize("text", ["<html>", "[" * 100_000])
async def test_a_message_that_is_not_json_ends_the_connection(text: str) -> None:
    async def garbage(gateway: Gateway, request: dict[str, Any]) -> None:
        await gateway.connection.send(text)

    async with gateway(garbage) as dial, OpenClawRpc.open(dial, TOKEN) as rpc:
        with pytest.raises(EngineFailed, match="not JSON"):
            await rpc.call("x")


async def test_strange_frames_are_ignored() -> None:
    async def strange(gateway: Gateway, request: dict[str, Any]) -> None:
        for message in (
            [],
            None,
            {"type": "res", "id": "999", "ok": True},
            {"type": 7},
            {"type": "event"},
            {"type": "event", "event": "tick"},
        ):
            await gateway.send(message)
        await gateway.result(request, "fine")
        await gateway.result(request, "twice")

    async with gateway(strange) as dial, OpenClawRpc.open(dial, TOKEN) as rpc:
        assert await rpc.call("x") == "fine"
        assert await rpc.call("x") == "fine"


async def test_an_endless_message_ends_the_connection() -> None:
    async def endless(gateway: Gateway, request: dict[str, Any]) -> None:
        await gateway.connection.send("x" * (9 << 20))

    async with gateway(endless) as dial, OpenClawRpc.open(dial, TOKEN) as rpc:
        with pytest.raises(EngineFailed, match="1009"):
            await rpc.call("x")


async def test_fragmented_messages_and_pings_are_handled() -> None:
    async def fragments(gateway: Gateway, request: dict[str, Any]) -> None:
        await (await gateway.connection.ping())
        whole = json.dumps({"type": "res", "id": request["id"], "ok": True, "payload": "x" * 1000})
        await gateway.connection.send([whole[:10], whole[10:500], whole[500:]])

    async with gateway(fragments) as dial, OpenClawRpc.open(dial, TOKEN) as rpc:
        assert await rpc.call("x") == "x" * 1000


async def test_a_server_without_websockets_is_an_engine_failure() -> None:
    async def http_only(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(http_only, "127.0.0.1", 0)

    async def dial(_port: int) -> Stream:
        return await asyncio.open_connection(*server.sockets[0].getsockname())

    async with server:
        with pytest.raises(EngineFailed, match="refused the WebSocket"):
            async with OpenClawRpc.open(dial, TOKEN):
                pass


async def test_a_stopped_container_is_reported() -> None:
    async def dial(_port: int) -> Stream:
        raise ContainerNotRunning

    with pytest.raises(ContainerNotRunning):
        async with OpenClawRpc.open(dial, TOKEN):
            pass


async def test_an_error_of_the_caller_closes_the_connection() -> None:
    streams: list[Stream] = []
    async with gateway(echo) as inner:

        async def dial(port: int) -> Stream:
            streams.append(await inner(port))
            return streams[-1]

        with pytest.raises(TimeoutError, match="mine"):
            async with OpenClawRpc.open(dial, TOKEN):
                raise TimeoutError("mine")
    assert streams[0][1].is_closing()


async def pair() -> tuple[Stream, Stream]:
    one, two = socket.socketpair()
    return await asyncio.open_connection(sock=one), await asyncio.open_connection(sock=two)


async def test_the_end_of_the_stream_during_the_upgrade_is_reported() -> None:
    ours, theirs = await pair()
    theirs[1].close()
    with pytest.raises(EngineFailed, match="refused the WebSocket"):
        async with StreamWebSocket.open(ours, "ws://127.0.0.1:1/", 100):
            pass
    assert ours[1].is_closing()


async def test_an_answer_that_is_not_http_is_reported() -> None:
    ours, theirs = await pair()
    theirs[1].write(b"\0" * 100 + b"\r\n\r\n")
    with pytest.raises(EngineFailed, match="refused the WebSocket"):
        async with StreamWebSocket.open(ours, "ws://127.0.0.1:1/", 100):
            pass
    theirs[1].close()


async def test_endless_headers_are_cut() -> None:
    ours, theirs = await pair()
    theirs[1].write(b"HTTP/1.1 101 Switching Protocols\r\n" + b"A: b\r\n" * 100_000)
    with pytest.raises(EngineFailed, match="refused the WebSocket"):
        async with StreamWebSocket.open(ours, "ws://127.0.0.1:1/", 100):
            pass
    theirs[1].close()
