"""Chat channels: how an engine is connected to the platforms where people talk to it."""

from dataclasses import dataclass
from typing import Literal

from roost.core.sensitive import Sensitive

DmPolicy = Literal["open", "pairing"]


@dataclass(frozen=True)
class ChannelSetup:
    """One channel as an agent has it (contract, Channel configuration object).

    allow_from: platform user ids that may write to the bot; empty with `open` means anyone.
    """

    bot_token: Sensitive[str] | None = None
    app_token: Sensitive[str] | None = None
    dm_policy: DmPolicy = "open"
    allow_from: tuple[str, ...] = ()
