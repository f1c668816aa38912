"""A stand-in for OpenClaw's gateway: it speaks the engine's frames over a real WebSocket server."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.server import ServerConnection, serve

from roost.core.sensitive import Sensitive
from roost.drivers.engine.contract import Dial
from roost.drivers.runtime.contract import Stream

TOKEN = Sensitive("internal-token")
Answer = Callable[["Gateway", dict[str, Any]], Awaitable[None]]


class Gateway:
    """One connection of the stand-in gateway."""

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
