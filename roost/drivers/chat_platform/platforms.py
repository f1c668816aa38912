"""Telegram, Slack and Discord: each token is verified by one request.

Redirects are not followed, because they would forward the token. Telegram's URLs contain it, so no error shows a URL.
The operator's proxy and certificate variables apply, except to an address on the loopback interface.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import httpx2

from roost.core.machine.network_advice import describe_network_error
from roost.core.sanitize import sanitize_line
from roost.core.sensitive import Sensitive
from roost.drivers.chat_platform.contract import BotTokens, ChatPlatform, PlatformUnreachable, TokenRejected
from roost.drivers.model.json_access import Json, as_object, parse_json
from roost.net.guarded_transport import is_loopback_url

_TIMEOUT_SECONDS = 5.0
_MAX_ANSWER_BYTES = 64 * 1024
_MAX_REASON_LENGTH = 200
_SLACK_SERVICE_ERRORS = frozenset(
    """
    accesslimited fatal_error internal_error ratelimited request_timeout service_unavailable team_added_to_org
    team_access_not_granted
    """.split()
)
"""Errors of Slack that do not concern the token."""


class _HttpChatPlatform(ChatPlatform):
    label: ClassVar[str]

    def __init__(self, url: str) -> None:
        """Use the platform's HTTP API at the base `url`."""
        self.url = url.rstrip("/")

    async def check(self, tokens: BotTokens) -> str | None:
        try:
            async with asyncio.timeout(_TIMEOUT_SECONDS), self._create_client() as client:
                return await self._verify_tokens(client, tokens)
        except (httpx2.RequestError, TimeoutError) as error:
            reason = describe_network_error(error)
            raise PlatformUnreachable(f"{self.label} could not verify the token: {reason}") from None

    @abstractmethod
    async def _verify_tokens(self, client: httpx2.AsyncClient, tokens: BotTokens) -> str | None: ...

    def _create_client(self) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            headers={"User-Agent": "roost", "Accept-Encoding": "identity"}, trust_env=not is_loopback_url(self.url)
        )

    async def _call(
        self, client: httpx2.AsyncClient, method: str, path: str, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Json]:
        """Return the status and the JSON object of an answer. Raises PlatformUnreachable for the platform's failure."""
        content = bytearray()
        async with client.stream(method, f"{self.url}/{path}", headers=headers) as response:
            async for chunk in response.aiter_bytes():
                content += chunk
                if len(content) > _MAX_ANSWER_BYTES:
                    break
        found = parse_json(bytes(content))
        if not isinstance(found, dict) or response.status_code >= 500 or response.status_code == 429:
            raise PlatformUnreachable(f"{self.label} could not verify the token: it answered {response.status_code}")
        return response.status_code, as_object(found)

    def _rejection(self, kind: str, reason: object, token: Sensitive[str]) -> TokenRejected:
        text = sanitize_line(str(reason).replace(token.reveal(), "[redacted]"))[:_MAX_REASON_LENGTH]
        return TokenRejected(f"{self.label} rejected the {kind} token: {text}")


class TelegramPlatform(_HttpChatPlatform):
    name = "telegram"
    label = "Telegram"

    async def _verify_tokens(self, client: httpx2.AsyncClient, tokens: BotTokens) -> str | None:
        status, answer = await self._call(client, "GET", f"bot{tokens.bot.reveal()}/getMe")
        if answer.get("ok") is True:
            return _user_name(as_object(answer.get("result")).get("username"))
        if status not in (401, 404):  # an unknown bot is "Not Found"
            raise PlatformUnreachable(f"Telegram could not verify the token: it answered {status}")
        raise self._rejection("bot", answer.get("description"), tokens.bot)


class SlackPlatform(_HttpChatPlatform):
    name = "slack"
    label = "Slack"

    async def _verify_tokens(self, client: httpx2.AsyncClient, tokens: BotTokens) -> str | None:
        bot = await self._verify_token(client, "auth.test", "bot", tokens.bot)
        if tokens.app is not None:
            await self._verify_token(client, "apps.connections.open", "app", tokens.app)
        return _user_name(bot.get("user"))

    async def _verify_token(self, client: httpx2.AsyncClient, method: str, kind: str, token: Sensitive[str]) -> Json:
        status, answer = await self._call(client, "POST", method, {"Authorization": f"Bearer {token.reveal()}"})
        if answer.get("ok") is True:
            return answer
        error = answer.get("error")
        if not isinstance(error, str) or error in _SLACK_SERVICE_ERRORS:
            raise PlatformUnreachable(f"Slack could not verify the token: it answered {status}")
        raise self._rejection(kind, error, token)


class DiscordPlatform(_HttpChatPlatform):
    name = "discord"
    label = "Discord"

    async def _verify_tokens(self, client: httpx2.AsyncClient, tokens: BotTokens) -> str | None:
        status, answer = await self._call(client, "GET", "users/@me", {"Authorization": f"Bot {tokens.bot.reveal()}"})
        if status == 200:
            return _user_name(answer.get("username"))
        if status != 401:
            raise PlatformUnreachable(f"Discord could not verify the token: it answered {status}")
        raise self._rejection("bot", answer.get("message"), tokens.bot)


def _user_name(value: object) -> str | None:
    return sanitize_line(value)[:100] if isinstance(value, str) and value else None
