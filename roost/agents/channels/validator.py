"""The intake: an order for a channel becomes one that may be kept, or is refused with what is wrong with it.

Its name, the plan, its form, and last, because it takes a request, whether the platform knows a new token. A platform
that cannot be asked is no reason to refuse: the person is warned, and the gateway goes on trying.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from roost.agents.channels.errors import ChannelPlanTooSmall, UnsupportedChannel
from roost.agents.channels.model import Channel, ChannelRequest, check_channel, merge_request
from roost.core import log
from roost.drivers.chat_platform.contract import BotTokens, ChatPlatform, PlatformUnreachable
from roost.drivers.engine.abilities.channels import CHANNELS
from roost.drivers.engine.contract import Engine
from roost.identity.caller import Plan

_log = log.get_logger("channels")


@dataclass(frozen=True)
class ValidatedChannel:
    channel: Channel
    warning: str | None = None


class ChannelValidator:
    def __init__(self, messengers: Sequence[ChatPlatform]) -> None:
        self._messengers = {messenger.name: messenger for messenger in messengers}

    async def validate(
        self, name: str, order: ChannelRequest, present: Channel | None, plan: Plan, supported: frozenset[str]
    ) -> ValidatedChannel:
        """Raises UnsupportedChannel, PlanTooSmall, TokenRejected, and what `merged` and `check` raise."""
        if name not in CHANNELS:
            raise UnsupportedChannel
        wanted = merge_request(name, order, present)
        if plan is Plan.FREE:
            raise ChannelPlanTooSmall
        if name not in supported:
            raise UnsupportedChannel
        check_channel(wanted)
        if present and (wanted.bot_token, wanted.app_token) == (present.bot_token, present.app_token):
            return ValidatedChannel(wanted)
        return await self._verify_token(wanted)

    async def validate_all(
        self, orders: Mapping[str, ChannelRequest], plan: Plan, engine: Engine, version: str
    ) -> Sequence[Channel]:
        """The channels of an agent that is being created. Raises what `take` raises."""
        able = supported_channels(engine, version)
        return [(await self.validate(name, order, None, plan, able)).channel for name, order in orders.items()]

    async def _verify_token(self, channel: Channel) -> ValidatedChannel:
        messenger = self._messengers.get(channel.name)
        if messenger is None:
            return ValidatedChannel(channel)
        try:
            bot_name = await messenger.check(BotTokens(channel.bot_token, channel.app_token))
        except PlatformUnreachable as problem:
            _log.warning("a bot token was taken unproved", channel=channel.name, reason=problem.message)
            return ValidatedChannel(channel, f"The token was not checked. {problem.message}")
        return ValidatedChannel(replace(channel, bot_name=bot_name))


def supported_channels(engine: Engine, version: str) -> frozenset[str]:
    """The channels that the engine can connect."""
    return engine.channels.supported(version) if engine.channels else frozenset()
