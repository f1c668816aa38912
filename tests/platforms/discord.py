"""Discord's REST API and gateway WebSocket as far as a bot in direct messages needs them."""

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from tests.platforms.standin import FakePlatform, arrived, fields

BOT_ID = "110000000000000001"
BOT = {"id": BOT_ID, "username": "roost", "discriminator": "0", "global_name": None, "avatar": None, "bot": True}
_OWNER = {**BOT, "id": "110000000000000002", "username": "owner", "bot": False}
_MESSAGE_CONTENT = 1 << 18  # an intent that the application was granted
_EPOCH = 1_420_070_400_000  # milliseconds; ids carry their time
_DISPATCH, _HEARTBEAT, _IDENTIFY, _RESUME, _HELLO, _ACK = 0, 1, 2, 6, 10, 11


@dataclass
class Discord(FakePlatform):
    """identified: the tokens that gateway connections came with."""

    hosts: ClassVar = ("discord.com", "gateway.discord.gg")
    token: str = "MTEwMDAwMDAwMDAwMDAwMDAx.GaBcDe.AbCdEfGhIjKlMnOpQrStUvWxYz0123456789_-"

    def __post_init__(self) -> None:
        self.identified: list[str] = []
        self._delivered = 0
        methods = ["GET", "POST", "PUT", "PATCH", "DELETE"]
        routes = [Route("/api/{path:path}", self._call, methods=methods), WebSocketRoute("/", self._gateway)]
        self._app = Starlette(routes=routes)

    @property
    def app(self) -> Starlette:
        return self._app

    def conversation(self, user: str) -> str:
        """The channel's id, which is made of the user's."""
        return f"9{user}"

    def say(self, user: str, text: str) -> None:
        author = {**BOT, "id": user, "username": f"user{user[-4:]}", "bot": False}
        self.inbox.append(_message(_snowflake(len(self.inbox)), self.conversation(user), text, author))

    async def _call(self, request: Request) -> Response:
        path = request.path_params["path"].partition("/")[2]  # without the version
        self.asked.append(f"{request.method} {path}")
        if path == "gateway":
            return JSONResponse({"url": "wss://gateway.discord.gg"})
        if request.headers.get("authorization") != f"Bot {self.token}":
            self.refused.append(path)
            return JSONResponse({"message": "401: Unauthorized", "code": 0}, 401)
        given = await fields(request) if request.method in ("POST", "PUT", "PATCH") else {}
        result = self._result(request.method, path.split("/"), given)
        return Response(status_code=204) if result is None else JSONResponse(result)

    def _result(self, method: str, path: list[str], given: dict[str, Any]) -> Any:
        match method, path:
            case "GET", ["gateway", "bot"]:
                limit = {"total": 1000, "remaining": 1000, "reset_after": 0, "max_concurrency": 1}
                return {"url": "wss://gateway.discord.gg", "shards": 1, "session_start_limit": limit}
            case "GET", ["users", "@me"]:
                return BOT
            case "GET", ["oauth2", "applications", "@me"] | ["applications", "@me"]:
                return _application()
            case "POST", ["users", "@me", "channels"]:
                return _channel(self.conversation(str(given["recipient_id"])))
            case "GET", ["channels", channel]:
                return _channel(channel)
            case "POST", ["channels", channel, "messages"]:
                return self._posted(channel, _snowflake(sum(map(len, self.posted.values()))), given)
            case "PATCH", ["channels", channel, "messages", number]:
                return self._posted(channel, number, given)
            case "DELETE", ["channels", channel, "messages", number]:
                self.posted[channel].pop(number, None)
                return None
            case "GET", ["channels", channel, "messages", number]:
                return _message(number, channel, self.posted[channel].get(number, ""), BOT)
            case "GET" | "PUT", [*_, "messages" | "commands" | "guilds"]:
                return []
            case "POST", ["applications", _, "commands"]:
                return {**given, "id": _snowflake(0), "application_id": BOT_ID, "version": "1"}
        return None

    def _posted(self, channel: str, number: str, given: dict[str, Any]) -> dict[str, Any]:
        told = json.loads(given["payload_json"]) if "payload_json" in given else given
        self.posted[channel][number] = str(told.get("content") or "")
        return _message(number, channel, self.posted[channel][number], BOT)

    async def _gateway(self, socket: WebSocket) -> None:
        await socket.accept()
        await socket.send_json({"op": _HELLO, "d": {"heartbeat_interval": 41_250}})
        with suppress(WebSocketDisconnect, RuntimeError):
            if not await self._admitted(socket):
                await socket.close(4004, "Authentication failed.")
                return
            reading = asyncio.create_task(self._read(socket))
            sequence = 1
            while not reading.done():
                if await arrived(self.inbox, self._delivered, 0.2):
                    sequence, self._delivered = sequence + 1, self._delivered + 1
                    await _dispatch(socket, "MESSAGE_CREATE", sequence, self.inbox[self._delivered - 1])
            reading.cancel()

    async def _admitted(self, socket: WebSocket) -> bool:
        while (told := json.loads(await socket.receive_text()))["op"] not in (_IDENTIFY, _RESUME):
            await self._answer(socket, told)
        self.identified.append(told["d"]["token"])
        if told["d"]["token"] != self.token:
            return False
        ready: dict[str, Any] = {"v": 10, "user": BOT, "guilds": [], "session_id": "one", "application": _application()}
        ready |= {"resume_gateway_url": "wss://gateway.discord.gg", "private_channels": []}
        await _dispatch(socket, "RESUMED" if told["op"] == _RESUME else "READY", 1, ready)
        return True

    async def _read(self, socket: WebSocket) -> None:
        with suppress(WebSocketDisconnect):
            while True:
                await self._answer(socket, json.loads(await socket.receive_text()))

    async def _answer(self, socket: WebSocket, told: dict[str, Any]) -> None:
        if told["op"] == _HEARTBEAT:
            await socket.send_json({"op": _ACK})


async def _dispatch(socket: WebSocket, kind: str, sequence: int, data: Any) -> None:
    await socket.send_json({"op": _DISPATCH, "t": kind, "s": sequence, "d": data})


def _application() -> dict[str, Any]:
    made = {"id": BOT_ID, "name": "roost", "icon": None, "description": "", "flags": _MESSAGE_CONTENT, "owner": _OWNER}
    return {**made, "bot_public": True, "bot_require_code_grant": False, "verify_key": "00" * 32, "rpc_origins": []}


def _channel(channel: str) -> dict[str, Any]:
    user = {**BOT, "id": channel[1:], "username": f"user{channel[-4:]}", "bot": False}
    return {"id": channel, "type": 1, "last_message_id": None, "flags": 0, "recipients": [user]}


def _message(number: str, channel: str, text: str, author: dict[str, Any]) -> dict[str, Any]:
    empty: dict[str, Any] = {"mentions": [], "mention_roles": [], "attachments": [], "embeds": [], "components": []}
    plain = {"tts": False, "mention_everyone": False, "pinned": False, "edited_timestamp": None, "type": 0, "flags": 0}
    stamp = datetime.now(UTC).isoformat()
    return {
        **empty,
        **plain,
        "id": number,
        "channel_id": channel,
        "author": author,
        "content": text,
        "timestamp": stamp,
    }


def _snowflake(number: int) -> str:
    milliseconds = int(datetime.now(UTC).timestamp() * 1000) - _EPOCH
    return str((milliseconds << 22) + number)
