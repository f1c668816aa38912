"""Chat channels: how an engine is connected to the platforms where people talk to it.

A gateway gets its channels at a start, in `GatewaySetup.channels`, and where the engine can do so (`HotChannels`) also
while it runs. Either way the mapping is everything: a channel that is not in it is off, whatever an earlier start or
the agent itself left in the engine's files. Users' other settings of a channel (groups, prefixes ...) stay.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from roost.core.sensitive import Sensitive
from roost.drivers.engine.abilities.agent_context import AgentContext

DmPolicy = Literal["open", "pairing"]

TELEGRAM, SLACK, DISCORD, WHATSAPP = "telegram", "slack", "discord", "whatsapp"
CHANNELS = (TELEGRAM, SLACK, DISCORD, WHATSAPP)
ERROR_LIMIT = 500


@dataclass(frozen=True)
class ChannelSetup:
    """One channel that is on, as an agent has it (contract, Channel configuration object).

    app_token: Slack's, and always there for Slack.
    dm_policy: `open` with no `allow_from` means that anyone may write to the bot, and with one that those listed may
        and nobody else; `pairing`, that a stranger gets a code which the owner approves, while those listed may write
        at once.
    """

    bot_token: Sensitive[str] | None = None
    app_token: Sensitive[str] | None = None
    dm_policy: DmPolicy = "open"
    allow_from: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChannelState:
    """What a running gateway says of a channel. Hostile: drivers cut `last_error` to ERROR_LIMIT characters.

    connected: whether the platform is reached now; None where the engine cannot tell.
    linked: whether a person has logged in (WhatsApp's QR code); None where that is not how it works.
    """

    running: bool
    connected: bool | None = None
    linked: bool | None = None
    last_error: str | None = None


class ChannelAbility(ABC):
    """What an engine that has channels can do. Without more, a change takes a restart of the gateway."""

    @abstractmethod
    def supported(self, version: str) -> frozenset[str]:
        """The names, of CHANNELS, that this version can connect as it is installed. Cheap: looks at folders."""

    def advice(self, channel: str) -> str | None:  # noqa: ARG002 - most channels need none
        """What a person has to know or to do, beside configuring it, until the channel works."""
        return None

    @abstractmethod
    async def status(self, inside: AgentContext) -> Mapping[str, ChannelState]:
        """The channels that the running gateway works on, within 10 s. Channels that are off may be left out.

        Raises EngineFailed, and what dialling raises.
        """


class HotChannelAbility(ChannelAbility):
    """The ability of an engine whose gateway takes changed channels without a restart."""

    @abstractmethod
    async def apply(self, inside: AgentContext, channels: Mapping[str, ChannelSetup]) -> None:
        """Have the running gateway work on these channels and no others, now and after any restart of its own.

        Returns when the gateway has taken the change, which may be before a platform is reached; at most 90 s.
        Idempotent. Raises EngineFailed when the gateway did not take it, and what dialling raises.
        """
