"""Validation of channel requests.

Checks name, plan, format, and last, because it takes a request, whether the platform accepts a new token. If the
platform is unreachable, the channel is accepted with a warning, and the gateway keeps trying to connect.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from roost.agents.setup.channels.model import (
    Channel,
    ChannelPlanTooSmall,
    ChannelRequest,
    ChannelTokenUntried,
    UnsupportedChannel,
    check_channel,
    merge_request,
)
from roost.core import clock, log
from roost.core.problem import ServerStopping
from roost.core.sanitize import sanitize_line
from roost.drivers.chat_platform.contract import BotTokens, ChatPlatform, PlatformUnreachable
from roost.drivers.engine.abilities.channels import CHANNELS, ERROR_LIMIT
from roost.drivers.engine.contract import Engine
from roost.identity.caller import Plan
from roost.net.errors import EgressProblem

_log = log.get_logger("channels")


@dataclass(frozen=True)
class ValidatedChannel:
    channel: Channel
    warning: str | None = None


AdmitUrl = Callable[[str, str], None]
"""Raises EgressProblem if an agent, the first argument, may not reach the URL; logs it as the agent's request."""


class ChannelValidator:
    def __init__(self, platforms: Sequence[ChatPlatform], admit: AdmitUrl) -> None:
        self._admit = admit
        self._platforms = {platform.name: platform for platform in platforms}
        self._running: set[asyncio.Timeout] = set()

    def stop(self) -> None:
        """End the running verifications, whose requests a stopping server has to answer; they raise ServerStopping."""
        for verification in self._running:
            verification.reschedule(0)

    async def validate(
        self,
        name: str,
        request: ChannelRequest,
        present: Channel | None,
        plan: Plan,
        supported: frozenset[str],
        agent_id: str | None = None,
    ) -> ValidatedChannel:
        """Validate a request and return the channel to store. A token of an agent is checked within its egress rules.

        A request without any setting checks the present token again.
        Raises UnsupportedChannel, ChannelPlanTooSmall, TokenRejected, ChannelTokenUntried, ServerStopping, and the
        errors of `merge_request` and `check_channel`.
        """
        if name not in CHANNELS:
            raise UnsupportedChannel
        channel = merge_request(name, request, present)
        if plan is Plan.FREE:
            raise ChannelPlanTooSmall
        if name not in supported:
            raise UnsupportedChannel
        check_channel(channel)
        is_same = present and (channel.bot_token, channel.app_token) == (present.bot_token, present.app_token)
        if is_same and request != ChannelRequest():
            return ValidatedChannel(channel)
        validated = await self._verify_token(channel, agent_id)
        if validated.warning and present and present.bot_name and not is_same:
            advice = "Nothing was changed; remove the channel first to use the token unchecked"
            raise ChannelTokenUntried(f"{validated.warning}. {advice}")
        return validated

    async def validate_all(
        self, requests: Mapping[str, ChannelRequest], plan: Plan, engine: Engine, version: str
    ) -> Sequence[Channel]:
        """Validate the channels of an agent that is being created, at once. Raises the errors of `validate`."""
        supported = supported_channels(engine, version)
        validated = await asyncio.gather(
            *(self.validate(name, request, None, plan, supported) for name, request in requests.items())
        )
        return [one.channel for one in validated]

    async def _verify_token(self, channel: Channel, agent_id: str | None) -> ValidatedChannel:
        platform = self._platforms.get(channel.name)
        if platform is None:
            return ValidatedChannel(channel)
        try:
            if agent_id is not None:  # its gateway token and its secrets lead here, too
                self._admit(agent_id, platform.url)
            async with self._until_stopped():
                bot_name = await platform.check(BotTokens(channel.bot_token, channel.app_token))
        except (PlatformUnreachable, EgressProblem) as problem:
            _log.warning("channel.verification_skipped", channel=channel.name, reason=problem.message)
            warning = sanitize_line(f"The token was not checked. {problem.message}")[:ERROR_LIMIT]
            return ValidatedChannel(replace(channel, unchecked=warning, unchecked_at=clock.utc_now()), warning)
        return ValidatedChannel(replace(channel, bot_name=bot_name, unchecked=None, unchecked_at=None))

    @asynccontextmanager
    async def _until_stopped(self) -> AsyncGenerator[None]:
        try:
            async with asyncio.timeout(None) as verification:
                self._running.add(verification)
                try:
                    yield
                finally:
                    self._running.discard(verification)
        except TimeoutError:
            raise ServerStopping from None


def supported_channels(engine: Engine, version: str) -> frozenset[str]:
    """Return the channels that the engine can connect."""
    return engine.channels.supported(version) if engine.channels else frozenset()
