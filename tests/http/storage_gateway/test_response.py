"""How answers go out: what is large in pieces, each in a bounded time, and not to who has left."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from roost.http.storage_gateway import response as replying
from roost.http.storage_gateway.response import (
    ClientTooSlow,
    GatewayResponse,
    ResponseAborted,
    ResponseOutput,
    send_response,
)

LARGE = bytes(range(256)) * 10_000


class Client:
    """Takes what is sent; `slow` from the second piece on, `gone` after the first."""

    def __init__(self, *, slow: bool = False, gone: bool = False) -> None:
        self.pieces: list[bytes] = []
        self.ended = False
        self._slow, self._gone = slow, gone
        self._left = asyncio.Event()

    async def send(self, message: Any) -> None:
        if message["type"] != "http.response.body":
            return
        if self._slow and self.pieces:
            await asyncio.Event().wait()
        self.pieces.append(message["body"])
        self.ended = not message.get("more_body")
        if self._gone:
            self._left.set()
            await asyncio.sleep(0)

    async def receive(self) -> Any:
        await self._left.wait()
        return {"type": "http.disconnect"}


async def out(client: Client, reply: GatewayResponse, *, head: bool = False) -> int:
    outlet = ResponseOutput(client.send)
    try:
        await send_response(reply, head=head, receive=client.receive, send=outlet)
    finally:
        assert outlet.sent == sum(map(len, client.pieces))
    return outlet.sent


async def rest() -> AsyncGenerator[bytes]:
    yield b"two"
    yield b"three"


async def test_a_large_body_goes_out_in_pieces() -> None:
    client = Client()
    assert await out(client, GatewayResponse(200, {}, LARGE, length=len(LARGE))) == len(LARGE)
    assert b"".join(client.pieces) == LARGE
    assert max(map(len, client.pieces)) == 1024**2
    assert client.ended


@pytest.mark.parametrize("body", [b"", b"small", bytes(1024**2)])
async def test_a_small_one_goes_out_at_once(body: bytes) -> None:
    client = Client()
    await out(client, GatewayResponse(200, {}, body))
    assert (client.pieces, client.ended) == ([body], True)


async def test_a_stream_goes_out_to_its_end() -> None:
    client = Client()
    assert await out(client, GatewayResponse(200, {}, b"one", rest())) == 11
    assert (b"".join(client.pieces), client.ended) == (b"onetwothree", True)


@pytest.mark.parametrize(
    "reply", [GatewayResponse(200, {}, LARGE), GatewayResponse(200, {}, b"", rest()), GatewayResponse(200, {}, b"x")]
)
async def test_a_head_has_no_body(reply: GatewayResponse) -> None:
    client = Client()
    assert await out(client, reply, head=True) == 0
    assert (client.pieces, client.ended) == ([b""], True)


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_client_that_takes_nothing_is_left(monkeypatch: pytest.MonkeyPatch, *, streamed: bool) -> None:
    monkeypatch.setattr(replying, "_STALL_TIMEOUT", 0.05)
    client = Client(slow=True)
    with pytest.raises(ResponseAborted) as broken:
        await out(client, GatewayResponse(200, {}, b"one", rest()) if streamed else GatewayResponse(200, {}, LARGE))
    assert isinstance(broken.value.__cause__, ClientTooSlow)
    assert not client.ended


async def test_nothing_goes_to_who_has_left() -> None:
    client = Client(gone=True)
    await out(client, GatewayResponse(200, {}, LARGE))
    assert len(client.pieces) < 3
    assert not client.ended
