"""Tokens are checked with a platform that accepts connections and never answers."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from roost.agents.setup.channels.model import ChannelRequest, ChannelTokenUntried
from roost.agents.setup.channels.validator import ChannelValidator
from roost.core.problem import ServerStopping
from roost.core.sensitive import Sensitive
from roost.drivers.chat_platform.platforms import DiscordPlatform, SlackPlatform, TelegramPlatform
from roost.drivers.engine.fake.driver import FakeEngine
from roost.identity.caller import Plan
from roost.net.errors import HostRefused
from tests.drivers.chat_platform.stand_in import DISCORD_BOT, SLACK_APP, SLACK_BOT, TELEGRAM_BOT

REQUESTS = {
    "telegram": ChannelRequest(bot_token=Sensitive(TELEGRAM_BOT)),
    "slack": ChannelRequest(bot_token=Sensitive(SLACK_BOT), app_token=Sensitive(SLACK_APP)),
    "discord": ChannelRequest(bot_token=Sensitive(DISCORD_BOT)),
}


@asynccontextmanager
async def silent_platform() -> AsyncIterator[tuple[str, "asyncio.Queue[asyncio.StreamWriter]"]]:
    """Yield the URL of a platform that never answers, and a queue of its connections."""
    connections: asyncio.Queue[asyncio.StreamWriter] = asyncio.Queue()
    server = await asyncio.start_server(lambda _, writer: connections.put_nowait(writer), "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", connections


async def test_channels_are_checked_at_the_same_time_and_a_stop_ends_the_checks() -> None:
    async with silent_platform() as (url, connections), asyncio.timeout(4):  # less than one check waits
        validator = ChannelValidator([TelegramPlatform(url), SlackPlatform(url), DiscordPlatform(url)], lambda *_: None)
        validating = asyncio.create_task(validator.validate_all(REQUESTS, Plan.PAID, FakeEngine(), "1.0.0"))
        writers = [await connections.get() for _ in REQUESTS]
        validator.stop()
        with pytest.raises(ServerStopping):
            await validating
        for writer in writers:
            writer.close()


async def test_a_token_of_an_agent_is_not_sent_where_the_agent_may_not_go() -> None:
    asked: list[tuple[str, str]] = []

    def admit(agent_id: str, url: str) -> None:
        asked.append((agent_id, url))
        raise HostRefused("api.example")

    async with silent_platform() as (url, connections), asyncio.timeout(4):
        validator = ChannelValidator([TelegramPlatform(url)], admit)
        request, supported = REQUESTS["telegram"], frozenset({"telegram"})
        validated = await validator.validate("telegram", request, None, Plan.PAID, supported, "a1")
        assert connections.empty()
    assert asked == [("a1", url)]
    assert (validated.channel.bot_name, validated.channel.bot_token.reveal()) == (None, TELEGRAM_BOT)
    assert (validated.warning or "").startswith("The token was not checked. api.example is refused")
    assert (validated.channel.unchecked, validated.channel.unchecked_at is None) == (validated.warning, False)


async def test_an_unchecked_token_does_not_replace_a_checked_one() -> None:
    def admit(*_: str) -> None:
        raise HostRefused("api.example")

    validator = ChannelValidator([TelegramPlatform("http://127.0.0.1:1")], admit)
    supported, new = frozenset({"telegram"}), ChannelRequest(bot_token=Sensitive(f"1{TELEGRAM_BOT}"))
    unchecked = await validator.validate("telegram", REQUESTS["telegram"], None, Plan.PAID, supported, "a1")
    again = await validator.validate("telegram", new, unchecked.channel, Plan.PAID, supported, "a1")
    assert again.channel.bot_token.reveal() == f"1{TELEGRAM_BOT}"
    works = replace(unchecked.channel, bot_name="ada_bot")
    with pytest.raises(ChannelTokenUntried, match=r"was not checked\. api\.example is refused.*Nothing was changed"):
        await validator.validate("telegram", new, works, Plan.PAID, supported, "a1")
    checked = await validator.validate("telegram", ChannelRequest(), works, Plan.PAID, supported, "a1")
    assert checked.warning
