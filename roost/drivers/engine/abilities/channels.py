"""Chat channels, which connect an engine to chat platforms.

A gateway receives its channels at its start in `GatewaySetup.channels`, and with `HotChannelAbility` also while it
runs. The mapping is complete: a channel that is not in it is disabled, whatever an earlier start or the agent left in
the engine's files. Other settings of a channel (groups, prefixes) belong to the user and are preserved.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Literal

from roost.core.problem import NotFound
from roost.core.sensitive import Sensitive
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.warden_client.errors import WardenTimedOut

DmPolicy = Literal["open", "pairing"]

TELEGRAM, SLACK, DISCORD, WHATSAPP = "telegram", "slack", "discord", "whatsapp"
CHANNELS = (TELEGRAM, SLACK, DISCORD, WHATSAPP)
ERROR_LIMIT = 500
MAX_PAIRING_REQUESTS = 20
NAME_LIMIT = 100
_CODE = re.compile(r"[A-Za-z0-9]{1,64}", re.ASCII)


class PairingRequestNotFound(NotFound):
    message = "Pairing request not found"


@dataclass(frozen=True)
class ChannelSetup:
    """Configuration of an enabled channel (contract, Channel configuration object).

    app_token: required for Slack, None for the others.
    dm_policy: `open` allows the users in `allow_from`, or all users if it is empty. `pairing` allows the users in
        `allow_from`, and gives others a code that the owner approves.
    """

    bot_token: Sensitive[str] | None = None
    app_token: Sensitive[str] | None = None
    dm_policy: DmPolicy = "open"
    allow_from: tuple[str, ...] = ()


@dataclass(frozen=True)
class PairingRequest:
    """A stranger who has written to the bot and waits for approval.

    Drivers sanitize the names and cut them to NAME_LIMIT characters. `request_id` is None if only the code approves it.
    """

    sender_id: str
    sender_name: str | None
    requested_at: datetime | None
    request_id: str | None = None


@dataclass(frozen=True)
class ChannelState:
    """State of a channel as a running gateway reports it; drivers cut `last_error` to ERROR_LIMIT characters.

    connected: whether the platform is connected now; None if the engine does not report it.
    linked: whether a user has logged in (WhatsApp's QR code); None for channels without a login.
    last_message_at: when the last message of an approved user arrived; None if the engine does not report it.
    requests: at most MAX_PAIRING_REQUESTS.
    """

    running: bool
    connected: bool | None = None
    linked: bool | None = None
    last_error: str | None = None
    last_message_at: datetime | None = None
    requests: tuple[PairingRequest, ...] = ()


class ChannelAbility(ABC):
    """Ability to connect chat channels. A change requires a restart of the gateway, except for `HotChannelAbility`.

    reports_messages: whether `status` has the time of the last message.
    """

    reports_messages: ClassVar[bool] = True

    @abstractmethod
    def supported(self, version: str) -> frozenset[str]:
        """Return the names in CHANNELS that an installed version can connect. Cheap: only looks at folders."""

    def advice(self, channel: str) -> str | None:  # noqa: ARG002 - most channels need none
        """Return the steps that a user has to take besides configuring the channel, if there are any."""
        return None

    @abstractmethod
    async def status(self, agent: AgentContext) -> Mapping[str, ChannelState]:
        """Return the states of the running gateway's channels within 10 s; disabled channels can be missing.

        Raises EngineFailed, and the errors of dialling.
        """


class HotChannelAbility(ChannelAbility):
    """Ability to change the channels of a running gateway without a restart."""

    @abstractmethod
    async def apply(self, agent: AgentContext, channels: Mapping[str, ChannelSetup]) -> None:
        """Make the running gateway use exactly these channels, also after it restarts itself.

        Returns when the gateway has accepted the change, within 90 s; platforms may not be connected yet. Idempotent.
        Raises EngineFailed if the gateway did not accept it, and the errors of dialling.
        """


class PairingAbility(ABC):
    """Ability to approve a pairing request without the code that the stranger got."""

    @abstractmethod
    async def approve_request(self, agent: AgentContext, channel: str, request_id: str) -> None:
        """Let the sender of a request write to the bot, within 10 s.

        Raises PairingRequestNotFound, EngineFailed, and the errors of dialling.
        """


class PairingCodeAbility(ABC):
    """Ability to approve a stranger by the code that the bot sent, with the engine's own program in the container.

    code_channels: the channels on which strangers get codes. approve_command: the program up to the channel and code.
    """

    code_channels: ClassVar[frozenset[str]]
    approve_command: Sequence[str]

    async def approve_code(self, agent: AgentContext, channel: str, code: str) -> None:
        """Let the stranger who got a code write to the bot, within 60 s.

        Raises PairingRequestNotFound, and the errors of `WardenClient.exec`.
        """
        if channel not in self.code_channels or not _CODE.fullmatch(code):
            raise PairingRequestNotFound
        done = await agent.warden.exec([*self.approve_command, channel, code], timeout=60, output_limit=64 * 1024)
        if done.timed_out:
            raise WardenTimedOut
        if done.exit_code or b"Approved" not in done.stdout:  # Hermes exits with 0 at an unknown code
            raise PairingRequestNotFound
