"""The book of channels: which an agent has, with their tokens sealed. One token is in it once.

What is written here is what the gateway gets at its next start. It asks no platform and no gateway.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from sqlalchemy import Connection

from roost.agents.channels import store
from roost.agents.channels.errors import BotTokenInUse
from roost.agents.channels.model import Channel
from roost.agents.registry.repository import AgentRepository
from roost.core import clock
from roost.core.db import Database
from roost.core.seal import Sealer, UnsealFailed
from roost.core.sensitive import Sensitive
from roost.drivers.engine.abilities.channels import ChannelSetup, DmPolicy


class ChannelRepository:
    def __init__(self, db: Database, sealer: Sealer, roster: AgentRepository) -> None:
        self._db = db
        self._sealer = sealer
        self._roster = roster

    async def get_channels(self, agent_id: str) -> Mapping[str, Channel]:
        """By name. Raises Unsealable."""
        rows = await self._db.read(lambda connection: store.list_channel_rows(connection, agent_id))
        return {name: self._open(row) for name, row in rows.items()}

    async def get_setups(self, agent_id: str) -> Mapping[str, ChannelSetup]:
        """The channels that are on, as a gateway gets them."""
        return {
            name: channel.to_setup() for name, channel in (await self.get_channels(agent_id)).items() if channel.enabled
        }

    async def list_private_values(self, agent_id: str) -> Sequence[Sensitive[str]]:
        """The tokens of the agent, which nobody is to read in its logs."""
        try:
            channels = (await self.get_channels(agent_id)).values()
        except UnsealFailed:  # then no gateway has been given one either
            return ()
        return [token for one in channels for token in (one.bot_token, one.app_token) if token is not None]

    async def save(self, agent_id: str, channel: Channel) -> None:
        """Add or replace. Raises TokenInUse, AgentGone."""

        def change(connection: Connection) -> None:
            self._roster.lock(connection, agent_id)
            self.save_in_transaction(connection, agent_id, [channel])

        await self._db.write(change)

    def save_in_transaction(self, connection: Connection, agent_id: str, channels: Sequence[Channel]) -> None:
        """`put` inside the caller's transaction, for an agent that is there."""
        for channel in channels:
            if not store.upsert_channel(connection, agent_id, channel, self._seal(agent_id, channel), clock.utc_now()):
                raise BotTokenInUse

    async def remove(self, agent_id: str, name: str) -> None:
        """Idempotent."""
        await self._db.write(lambda connection: store.delete_channel(connection, agent_id, name))

    @staticmethod
    def remove_all(connection: Connection, agent_id: str) -> None:
        """Forget all of an agent that goes, inside the transaction that hides it: others may have its bots at once."""
        store.delete_channels(connection, agent_id)

    def _seal(self, agent_id: str, channel: Channel) -> bytes:
        tokens = {"bot": channel.bot_token.reveal(), "app": channel.app_token.reveal() if channel.app_token else None}
        return self._sealer.seal(json.dumps(tokens).encode(), _associated_data(agent_id, channel.name))

    def _open(self, row: Any) -> Channel:
        try:
            tokens = json.loads(self._sealer.open(row.sealed, _associated_data(row.agent_id, row.channel)).reveal())
        except ValueError:
            raise UnsealFailed from None
        return Channel(
            name=row.channel,
            bot_token=Sensitive(tokens["bot"]),
            app_token=Sensitive(tokens["app"]) if tokens["app"] else None,
            dm_policy=cast("DmPolicy", row.dm_policy),
            allow_from=tuple(row.allow_from),
            enabled=row.enabled,
            bot_name=row.bot_name,
        )


def _associated_data(agent_id: str, channel: str) -> str:
    return store.ASSOCIATED_DATA.format(agent_id=agent_id, channel=channel)
