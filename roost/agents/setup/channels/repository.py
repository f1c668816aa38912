"""Stored channels of agents. Tokens are sealed, and each token is stored once.

The gateway gets the stored channels at its next start; this module contacts neither platforms nor gateways.
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from roost.agents.registry.repository import AgentRepository
from roost.agents.setup.channels import store
from roost.agents.setup.channels.model import BotTokenInUse, Channel
from roost.core import clock
from roost.core.db import Database, DataChange, read_record, record_change
from roost.core.seal import Sealer, UnsealFailed
from roost.core.sensitive import Sensitive
from roost.drivers.engine.abilities.channels import ChannelSetup


class ChannelRepository:
    def __init__(self, db: Database, sealer: Sealer, agents: AgentRepository) -> None:
        self._db = db
        self._sealer = sealer
        self._agents = agents

    async def get_channels(self, agent_id: str) -> Mapping[str, Channel]:
        """Return the agent's channels by name. Raises UnsealFailed."""
        rows = await self._db.read(lambda connection: store.list_channel_rows(connection, agent_id))
        return {name: self._open(row) for name, row in rows.items()}

    async def get_setups(self, agent_id: str) -> Mapping[str, ChannelSetup]:
        """Return the enabled channels in the form for a gateway."""
        return {
            name: channel.to_setup() for name, channel in (await self.get_channels(agent_id)).items() if channel.enabled
        }

    async def get_private_values(self, agent_id: str) -> Mapping[str, Sensitive[str]]:
        """Return the agent's tokens by what they are, which its logs mask and its snapshots leave out."""
        try:
            channels = (await self.get_channels(agent_id)).values()
        except UnsealFailed:  # then no gateway has received one either
            return {}
        bot_tokens = {f"channel {channel.name}": channel.bot_token for channel in channels}
        app_tokens = {f"channel {channel.name} app": channel.app_token for channel in channels if channel.app_token}
        return bot_tokens | app_tokens

    async def save(self, agent_id: str, channel: Channel) -> None:
        """Insert or replace a channel. Raises BotTokenInUse, AgentNotFound."""

        def change(connection: Connection) -> None:
            self._agents.lock(connection, agent_id)
            self.save_in_transaction(connection, agent_id, [channel])

        await self._db.write(change)

    def save_in_transaction(self, connection: Connection, agent_id: str, channels: Sequence[Channel]) -> None:
        """Save channels of an existing agent in the caller's transaction. Raises BotTokenInUse."""
        for channel in channels:
            if not store.upsert_channel(connection, agent_id, channel, self._seal(agent_id, channel), clock.utc_now()):
                raise BotTokenInUse
            _record(connection, agent_id, channel.name, "saved")

    async def remove(self, agent_id: str, name: str) -> None:
        """Remove a channel; idempotent."""

        def change(connection: Connection) -> None:
            if store.delete_channel(connection, agent_id, name):
                _record(connection, agent_id, name, "removed")

        await self._db.write(change)

    @staticmethod
    def remove_all(connection: Connection, agent_id: str) -> None:
        """Remove all channels of an agent, in the transaction that marks it deleted; its tokens become free at once."""
        store.delete_channels(connection, agent_id)

    def _seal(self, agent_id: str, channel: Channel) -> bytes:
        tokens = {"bot": channel.bot_token.reveal(), "app": channel.app_token.reveal() if channel.app_token else None}
        if channel.unchecked and channel.unchecked_at:
            tokens |= {"unchecked": channel.unchecked, "unchecked_at": channel.unchecked_at.isoformat()}
        return self._sealer.seal(json.dumps(tokens).encode(), _associated_data(agent_id, channel.name))

    def _open(self, row: Any) -> Channel:
        try:
            tokens = json.loads(self._sealer.open(row.sealed, _associated_data(row.agent_id, row.channel)).reveal())
        except ValueError:
            raise UnsealFailed from None
        return read_record(
            Channel,
            row,
            name=row.channel,
            bot_token=Sensitive(tokens["bot"]),
            app_token=Sensitive(tokens["app"]) if tokens["app"] else None,
            allow_from=tuple(row.allow_from),
            unchecked=tokens.get("unchecked"),
            unchecked_at=datetime.fromisoformat(tokens["unchecked_at"]) if "unchecked_at" in tokens else None,
        )


def _record(connection: Connection, agent_id: str, name: str, action: str) -> None:
    record_change(connection, DataChange("channel", "changed", name, agent_id=agent_id, data={"action": action}))


def _associated_data(agent_id: str, channel: str) -> str:
    return store.ASSOCIATED_DATA.format(agent_id=agent_id, channel=channel)
