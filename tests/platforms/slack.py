"""Slack's Web API and Socket Mode as far as a bot in direct messages needs them."""

import asyncio
import json
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from tests.platforms.standin import FakePlatform, arrived, fields

TEAM, APP, BOT, BOT_USER = "T0ROOST01", "A0ROOST01", "B0ROOST01", "U0ROOSTBOT"


@dataclass
class Slack(FakePlatform):
    """acknowledged: the envelopes that the bot confirmed."""

    hosts: ClassVar = ("slack.com", "wss-primary.slack.com")
    token: str = "xoxb-1234567890-1234567890-AbCdEfGhIjKlMnOpQrStUvWx"
    app_token: str = "xapp-1-A0ROOST01-1234567890-abcdef0123456789"

    def __post_init__(self) -> None:
        self.acknowledged: set[str] = set()
        self._delivered = 0
        routes = [Route("/api/{method}", self._call, methods=["GET", "POST"]), WebSocketRoute("/link/", self._link)]
        self._app = Starlette(routes=routes)

    @property
    def app(self) -> Starlette:
        return self._app

    def conversation(self, user: str) -> str:
        return f"D{user}"

    def say(self, user: str, text: str) -> None:
        stamp = f"{time.time():.6f}"
        event = {"type": "message", "channel_type": "im", "channel": self.conversation(user), "user": user}
        event |= {"text": text, "ts": stamp, "event_ts": stamp, "team": TEAM, "client_msg_id": f"m-{len(self.inbox)}"}
        self.inbox.append(event)

    async def _call(self, request: Request) -> Response:
        method, given = request.path_params["method"], await fields(request)
        self.asked.append(method)
        sent = request.headers.get("authorization", "").removeprefix("Bearer ") or given.get("token")
        if sent != (self.app_token if method == "apps.connections.open" else self.token):
            self.refused.append(method)
            return JSONResponse({"ok": False, "error": "invalid_auth"})
        return JSONResponse({"ok": True, **self._result(method, given)}, headers={"x-oauth-scopes": "chat:write"})

    def _result(self, method: str, given: dict[str, Any]) -> dict[str, Any]:
        channel, user = str(given.get("channel", "")), str(given.get("user", ""))
        if channel.startswith("U"):  # a user stands for the conversation with that user
            channel = self.conversation(channel)
        match method:
            case "auth.test":
                names = {"url": "https://roost.slack.com/", "team": "Roost", "user": "roost"}
                return {**names, "team_id": TEAM, "user_id": BOT_USER, "bot_id": BOT}
            case "apps.connections.open":
                return {"url": "wss://wss-primary.slack.com/link/?ticket=one&app_id=two"}
            case "chat.postMessage":
                return self._posted(channel, f"{time.time():.6f}", given.get("text", ""))
            case "chat.update":
                return self._posted(channel, given["ts"], given.get("text", ""))
            case "chat.delete":
                self.posted[channel].pop(given["ts"], None)
            case "users.info":
                profile = {"display_name": f"User {user}", "real_name": f"User {user}"}
                return {
                    "user": {"id": user, "team_id": TEAM, "name": user.lower(), "is_bot": False, "profile": profile}
                }
            case "conversations.info" | "conversations.open":
                return {"channel": {"id": channel or f"D{given.get('users', '')}", "is_im": True, "user": channel[1:]}}
            case "conversations.replies" | "conversations.history":
                return {"messages": [], "has_more": False}
            case "bots.info":
                return {"bot": {"id": BOT, "app_id": APP, "user_id": BOT_USER, "name": "roost"}}
            case "users.conversations" | "conversations.list":
                return {"channels": [], "response_metadata": {"next_cursor": ""}}
            case "users.list":
                return {"members": [], "response_metadata": {"next_cursor": ""}}
        return {}

    def _posted(self, channel: str, stamp: str, text: str) -> dict[str, Any]:
        self.posted[channel][stamp] = text
        message = {"type": "message", "user": BOT_USER, "bot_id": BOT, "text": text, "ts": stamp}
        return {"channel": channel, "ts": stamp, "text": text, "message": message}

    async def _link(self, socket: WebSocket) -> None:
        """One connection at a time gets each event, as Slack deals them out."""
        await socket.accept()
        await socket.send_json({"type": "hello", "num_connections": 1, "connection_info": {"app_id": APP}})
        reading = asyncio.create_task(self._read(socket))
        with suppress(WebSocketDisconnect, RuntimeError):
            while not reading.done():
                if await arrived(self.inbox, self._delivered, 0.2):
                    self._delivered += 1
                    await socket.send_json(self._envelope(self._delivered))
        reading.cancel()

    async def _read(self, socket: WebSocket) -> None:
        with suppress(WebSocketDisconnect):
            while True:
                told = json.loads(await socket.receive_text())
                self.acknowledged.add(str(told.get("envelope_id")))

    def _envelope(self, number: int) -> dict[str, Any]:
        authorization = {"team_id": TEAM, "user_id": BOT_USER, "is_bot": True, "is_enterprise_install": False}
        payload = {
            "type": "event_callback",
            "team_id": TEAM,
            "api_app_id": APP,
            "event": self.inbox[number - 1],
            "event_id": f"Ev{number:08}",
            "event_time": int(time.time()),
            "authorizations": [authorization],
        }
        return {
            "envelope_id": f"envelope-{number}",
            "type": "events_api",
            "payload": payload,
            "accepts_response_payload": False,
        }
