"""The three platforms against stand-ins: a token is known, rejected in the platform's words, or nothing is known."""

from collections.abc import Callable, Iterator

import pytest

from roost.core.sensitive import Sensitive
from roost.drivers.chat_platform.contract import BotTokens, ChatPlatform, PlatformUnreachable, TokenRejected
from roost.drivers.chat_platform.platforms import DiscordPlatform, SlackPlatform, TelegramPlatform
from tests.drivers.chat_platform.stand_in import (
    DISCORD_BOT,
    SLACK_APP,
    SLACK_BOT,
    TELEGRAM_BOT,
    FakeTokenApi,
    platforms,
)

CASES = [
    pytest.param(TelegramPlatform, BotTokens(Sensitive(TELEGRAM_BOT)), "weather_bot", id="telegram"),
    pytest.param(SlackPlatform, BotTokens(Sensitive(SLACK_BOT), Sensitive(SLACK_APP)), "weather", id="slack"),
    pytest.param(DiscordPlatform, BotTokens(Sensitive(DISCORD_BOT)), "Weather", id="discord"),
]
each = pytest.mark.parametrize(("kind", "tokens", "name"), CASES)


@pytest.fixture
def platform_api() -> Iterator[FakeTokenApi]:
    with platforms() as api:
        yield api


@each
async def test_a_known_token_has_a_name(
    kind: Callable[[str], ChatPlatform], tokens: BotTokens, name: str, platform_api: FakeTokenApi
) -> None:
    assert await kind(platform_api.url).check(tokens) == name


@each
async def test_an_unknown_token_is_rejected_without_being_told(
    kind: Callable[[str], ChatPlatform], tokens: BotTokens, name: str, platform_api: FakeTokenApi
) -> None:
    platform_api.known.clear()
    with pytest.raises(TokenRejected) as rejected:
        await kind(platform_api.url).check(tokens)
    assert "rejected the bot token: " in rejected.value.message
    assert tokens.bot.reveal() not in rejected.value.message
    assert name not in rejected.value.message


async def test_slacks_app_token_is_proved_too(platform_api: FakeTokenApi) -> None:
    platform_api.known.discard(SLACK_APP)
    with pytest.raises(TokenRejected, match="Slack rejected the app token: invalid_auth"):
        await SlackPlatform(platform_api.url).check(BotTokens(Sensitive(SLACK_BOT), Sensitive(SLACK_APP)))


@each
@pytest.mark.parametrize("status", [500, 503, 429, 403, 302])
async def test_trouble_of_a_platform_says_nothing_about_a_token(
    kind: Callable[[str], ChatPlatform], tokens: BotTokens, name: str, platform_api: FakeTokenApi, status: int
) -> None:
    if kind is SlackPlatform and status in (403, 302):
        platform_api.error = "ratelimited"
        platform_api.known.clear()
    else:
        platform_api.trouble = status
    with pytest.raises(PlatformUnreachable) as trouble:
        await kind(platform_api.url).check(tokens)
    assert tokens.bot.reveal() not in trouble.value.message
    assert name not in trouble.value.message


@each
@pytest.mark.parametrize("raw", [b"<html>", b"[]", b"[" * 60_000, b" " * 200_000])
async def test_malformed_answers_name_no_bot(
    kind: Callable[[str], ChatPlatform], tokens: BotTokens, name: str, platform_api: FakeTokenApi, raw: bytes
) -> None:
    platform_api.raw = raw
    with pytest.raises(PlatformUnreachable) as trouble:
        await kind(platform_api.url).check(tokens)
    assert name not in trouble.value.message


@each
async def test_a_platform_that_is_not_there_is_told_without_its_address(
    kind: Callable[[str], ChatPlatform], tokens: BotTokens, name: str
) -> None:
    with pytest.raises(PlatformUnreachable) as trouble:
        await kind("http://127.0.0.1:9").check(tokens)
    assert "127.0.0.1" not in trouble.value.message
    assert tokens.bot.reveal() not in trouble.value.message
    assert name not in trouble.value.message
