"""How a channel is asked for (contract: Channel configuration object), by itself and with a new agent."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from roost.agents.channels.model import ALLOW_FROM_LIMIT, ID_LIMIT, TOKEN_LIMIT, Order
from roost.core.sensitive import Sensitive
from roost.drivers.engine.abilities.channels import DmPolicy
from roost.web.wire import Text, Wire

_Token = Annotated[Text, Field(max_length=TOKEN_LIMIT)]
_UserId = Annotated[Text, Field(min_length=1, max_length=ID_LIMIT)]


class ChannelConfiguration(Wire):
    bot_token: _Token | None = None
    app_token: _Token | None = None
    dm_policy: DmPolicy | None = None
    allow_from: Annotated[Sequence[_UserId], Field(max_length=ALLOW_FROM_LIMIT)] | None = None
    enabled: bool | None = None

    def order(self) -> Order:
        bot, app = (Sensitive(token) if token else None for token in (self.bot_token, self.app_token))
        return Order(bot, app, self.dm_policy, self.allow_from, self.enabled)
