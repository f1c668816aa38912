"""Telegram, Slack and Discord: one request that proves a token, or two for Slack, which has two tokens.

Redirects are not followed, because the token would go along; Telegram has it in the path, so no address is ever told.
The operator's proxy and certificate variables count, except for an address on this machine's loopback.
"""

import asyncio
import json
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import httpx2

from roost.core.sanitize import sanitize_line
from roost.core.sensitive import Sensitive
from roost.drivers.chat_platform.contract import BotTokens, ChatPlatform, MessengerUnreachable, TokenRejected
from roost.net.loopback import is_loopback_url

_SECONDS = 5.0
_LARGEST = 64 * 1024
_LONGEST_REASON = 200
_SLACK_TROUBLE = frozenset(
    {
        *("accesslimited", "fatal_error", "internal_error", "ratelimited", "request_timeout"),
        *("service_unavailable", "team_added_to_org", "team_access_not_granted"),
    }
)
"""Errors of Slack that say nothing about the token."""

Json = dict[str, Any]


@dataclass(frozen=True)
class _PlatformResponse:
    status: int
    body: Json


class _HttpChatPlatform(ChatPlatform):
    label: ClassVar[str]

    def __init__(self, url: str) -> None:
        """`url` is the base of the platform's HTTP API."""
        self._url = url.rstrip("/")

    async def check(self, tokens: BotTokens) -> str | None:
        try:
            async with asyncio.timeout(_SECONDS), self._connection() as client:
                return await self._ask(client, tokens)
        except (httpx2.RequestError, TimeoutError) as error:
            raise MessengerUnreachable(f"{self.label} could not be asked: {type(error).__name__}") from None

    @abstractmethod
    async def _ask(self, client: httpx2.AsyncClient, tokens: BotTokens) -> str | None: ...

    def _connection(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            headers={"User-Agent": "roost", "Accept-Encoding": "identity"}, trust_env=not is_loopback_url(self._url)
        )

    async def _call(
        self, client: httpx2.AsyncClient, method: str, path: str, headers: Mapping[str, str] | None = None
    ) -> _PlatformResponse:
        """The status and the JSON object of an answer. Raises MessengerUnreachable for what is neither yes nor no."""
        content = bytearray()
        async with client.stream(method, f"{self._url}/{path}", headers=headers) as response:
            async for piece in response.aiter_bytes():
                content += piece
                if len(content) > _LARGEST:
                    break
        try:
            found = json.loads(content)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict) or response.status_code >= 500 or response.status_code == 429:
            raise MessengerUnreachable(f"{self.label} could not be asked: it answered {response.status_code}")
        return _PlatformResponse(response.status_code, cast("Json", found))

    def _rejected(self, what: str, reason: object, token: Sensitive[str]) -> TokenRejected:
        why = sanitize_line(str(reason).replace(token.reveal(), "[redacted]"))[:_LONGEST_REASON]
        return TokenRejected(f"{self.label} rejected the {what} token: {why}")


class TelegramPlatform(_HttpChatPlatform):
    name = "telegram"
    label = "Telegram"

    async def _ask(self, client: httpx2.AsyncClient, tokens: BotTokens) -> str | None:
        answer = await self._call(client, "GET", f"bot{tokens.bot.reveal()}/getMe")
        if answer.body.get("ok") is True:
            return _name(_object(answer.body.get("result")).get("username"))
        if answer.status not in (401, 404):  # it says "Not Found" of a bot that does not exist
            raise MessengerUnreachable(f"Telegram could not be asked: it answered {answer.status}")
        raise self._rejected("bot", answer.body.get("description"), tokens.bot)


class SlackPlatform(_HttpChatPlatform):
    name = "slack"
    label = "Slack"

    async def _ask(self, client: httpx2.AsyncClient, tokens: BotTokens) -> str | None:
        bot = await self._prove(client, "auth.test", "bot", tokens.bot)
        if tokens.app is not None:
            await self._prove(client, "apps.connections.open", "app", tokens.app)
        return _name(bot.get("user"))

    async def _prove(self, client: httpx2.AsyncClient, method: str, what: str, token: Sensitive[str]) -> Json:
        answer = await self._call(client, "POST", method, {"Authorization": f"Bearer {token.reveal()}"})
        if answer.body.get("ok") is True:
            return answer.body
        error = answer.body.get("error")
        if not isinstance(error, str) or error in _SLACK_TROUBLE:
            raise MessengerUnreachable(f"Slack could not be asked: it answered {answer.status}")
        raise self._rejected(what, error, token)


class DiscordPlatform(_HttpChatPlatform):
    name = "discord"
    label = "Discord"

    async def _ask(self, client: httpx2.AsyncClient, tokens: BotTokens) -> str | None:
        answer = await self._call(client, "GET", "users/@me", {"Authorization": f"Bot {tokens.bot.reveal()}"})
        if answer.status == 200:
            return _name(answer.body.get("username"))
        if answer.status != 401:
            raise MessengerUnreachable(f"Discord could not be asked: it answered {answer.status}")
        raise self._rejected("bot", answer.body.get("message"), tokens.bot)


def _name(value: object) -> str | None:
    return sanitize_line(value)[:100] if isinstance(value, str) and value else None


def _object(value: object) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}
