"""WebSockets of the application, on a real connection."""

import asyncio
from typing import Any

from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from websockets.asyncio.client import ClientConnection, connect
from websockets.frames import Frame, Opcode

from roost.http.server.server import HttpServer, open_listener

DEADLINE = 10.0


class CountingConnection(ClientConnection):
    """Tells when the server has sent three pings."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.pings = 0
        self.third_ping = asyncio.Event()

    def process_event(self, event: Any) -> None:
        if isinstance(event, Frame) and event.opcode is Opcode.PING:
            self.pings += 1
            if self.pings == 3:
                self.third_ping.set()
        super().process_event(event)


async def test_a_client_lives_while_the_application_leaves_its_messages() -> None:
    """Until they are taken, nothing is read from the connection, the answers to pings included."""
    accepted, take = asyncio.Event(), asyncio.Event()
    taken: list[str] = []

    async def application(_: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        accepted.set()
        await take.wait()
        taken.extend([(await receive())["text"] for _ in range(2)])
        await send({"type": "websocket.close"})

    server, stop = HttpServer(application, HttpToolsProtocol), asyncio.Event()
    server.config.ws_ping_interval = server.config.ws_ping_timeout = 0.02
    with open_listener("127.0.0.1", 0) as listener:
        serving = asyncio.create_task(server.run_on([listener], stop))
        url = f"ws://127.0.0.1:{listener.getsockname()[1]}"
        async with asyncio.timeout(DEADLINE), connect(url, create_connection=CountingConnection) as client:
            for word in ("one", "two"):
                await client.send(word)
            assert isinstance(client, CountingConnection)
            await client.third_ping.wait()
            take.set()
            await client.wait_closed()
        stop.set()
        await serving
    assert (taken, client.close_code) == (["one", "two"], 1000)
