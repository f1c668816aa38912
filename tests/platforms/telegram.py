"""Telegram's Bot API as far as a bot in private chats needs it: long polling, messages, edits."""

import time
from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.platforms.standin import FakePlatform, arrived, fields

BOT = {"id": 7000000001, "is_bot": True, "first_name": "Roost", "username": "roost_standin_bot"}
_LONGEST_POLL = 2.0  # seconds; the real one waits as long as it is told


@dataclass
class Telegram(FakePlatform):
    hosts: ClassVar = ("api.telegram.org",)
    token: str = "7000000001:AAEhBOweik6ad9r_QXMENQjcrGbqCr4K-bc"

    def __post_init__(self) -> None:
        self._confirmed = 0  # for all clients: an update before this offset is not sent again
        self._app = Starlette(routes=[Route("/bot{token}/{method}", self._call, methods=["GET", "POST"])])

    @property
    def app(self) -> Starlette:
        return self._app

    def say(self, user: str, text: str) -> None:
        self.inbox.append({"update_id": len(self.inbox) + 1, "message": _message(len(self.inbox) + 1, user, text)})

    async def _call(self, request: Request) -> Response:
        method = request.path_params["method"]
        self.asked.append(method)
        if request.path_params["token"] != self.token:
            self.refused.append(method)
            return JSONResponse({"ok": False, "error_code": 401, "description": "Unauthorized"}, 401)
        given = await fields(request)
        return JSONResponse({"ok": True, "result": await self._result(method, given)})

    async def _result(self, method: str, given: dict[str, Any]) -> Any:
        match method:
            case "getMe":
                return {**BOT, "can_join_groups": True, "can_read_all_group_messages": False}
            case "getUpdates":
                self._confirmed = max(int(given.get("offset", 0)) - 1, self._confirmed)
                await arrived(self.inbox, self._confirmed, min(float(given.get("timeout", 0)), _LONGEST_POLL))
                return self.inbox[self._confirmed :]
            case "sendMessage":
                number = str(1000 + sum(map(len, self.posted.values())))
                return self._posted(str(given["chat_id"]), number, given["text"])
            case "editMessageText":
                return self._posted(str(given["chat_id"]), str(given["message_id"]), given["text"])
            case "deleteMessage":
                self.posted[str(given["chat_id"])].pop(str(given["message_id"]), None)
            case "getWebhookInfo":
                return {"url": "", "has_custom_certificate": False, "pending_update_count": 0}
            case "getChat":
                return {"id": int(given["chat_id"]), "type": "private", "accent_color_id": 0, "max_reaction_count": 11}
            case "getMyCommands":
                return []
        return True

    def _posted(self, chat: str, number: str, text: str) -> dict[str, Any]:
        self.posted[chat][number] = text
        return {**_message(int(number), chat, text), "from": BOT}


def _message(number: int, user: str, text: str) -> dict[str, Any]:
    made: dict[str, Any] = {
        "message_id": number,
        "date": int(time.time()),
        "chat": {"id": int(user), "type": "private", "first_name": f"User {user}"},
        "from": {"id": int(user), "is_bot": False, "first_name": f"User {user}", "language_code": "en"},
        "text": text,
    }
    return made
