"""Channels on both databases: sealed, each bot token used once, deleted with their agent."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from roost.agents.registry.errors import AgentNotFound
from roost.agents.registry.model import AgentProfile
from roost.agents.registry.repository import AgentRepository
from roost.agents.setup.channels.model import BotTokenInUse, Channel
from roost.agents.setup.channels.repository import ChannelRepository
from roost.agents.setup.channels.store import agent_channels
from roost.core.db import Connection, Database, DataChange, take_changes
from roost.core.seal import UnsealFailed
from roost.core.sensitive import Sensitive
from roost.identity import tenants
from roost.identity.caller import Plan
from tests.agents.lifecycle.workflows.lifecycle_env import SEALER

SLACK = Channel("slack", Sensitive("xoxb-1"), Sensitive("xapp-1"), "pairing", ("U1",), enabled=True, bot_name="b")
WHATSAPP = Channel("whatsapp", Sensitive("any"), None, "open", (), enabled=False)


class ChannelEnv:
    def __init__(self, db: Database) -> None:
        self.db = db
        self.agents = AgentRepository(db, SEALER, {Plan.PAID: 20}, "host")
        self.channels = ChannelRepository(db, SEALER, self.agents)

    async def agent(self) -> str:
        def add(connection: Connection) -> str:
            tenant = tenants.ensure_tenant(connection, "acme", Plan.PAID)
            return self.agents.create(connection, tenant.id, AgentProfile("a"), "fake", "1").id

        return await self.db.write(add)


@pytest.fixture
def env(database: Database) -> ChannelEnv:
    return ChannelEnv(database)


async def test_there_and_back(env: ChannelEnv) -> None:
    one = await env.agent()
    await env.channels.save(one, SLACK)
    await env.channels.save(one, WHATSAPP)
    assert await env.channels.get_channels(one) == {"slack": SLACK, "whatsapp": WHATSAPP}
    assert await env.channels.get_setups(one) == {"slack": SLACK.to_setup()}
    assert await env.channels.get_private_values(one) == {
        "channel slack": Sensitive("xoxb-1"),
        "channel slack app": Sensitive("xapp-1"),
        "channel whatsapp": Sensitive("any"),
    }
    moment = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    changed = replace(SLACK, allow_from=(), bot_name=None, unchecked="It answered 503", unchecked_at=moment)
    await env.channels.save(one, changed)
    await env.channels.remove(one, "whatsapp")
    assert await env.channels.get_channels(one) == {"slack": changed}


async def test_one_token_is_one_agents(env: ChannelEnv) -> None:
    one, other = await env.agent(), await env.agent()
    await env.channels.save(one, SLACK)
    await env.channels.save(one, WHATSAPP)
    await env.channels.save(other, WHATSAPP)
    for taken in (SLACK, replace(SLACK, bot_token=Sensitive("xoxb-2")), replace(SLACK, app_token=Sensitive("xapp-2"))):
        with pytest.raises(BotTokenInUse):
            await env.channels.save(other, taken)
    await env.db.write(lambda connection: ChannelRepository.remove_all(connection, one))
    assert await env.channels.get_channels(one) == {}
    await env.channels.save(other, SLACK)


async def test_an_agent_that_is_gone_gets_none(env: ChannelEnv) -> None:
    one = await env.agent()
    await env.db.write(lambda connection: env.agents.mark_deleted(connection, one))
    with pytest.raises(AgentNotFound):
        await env.channels.save(one, SLACK)


async def test_an_envelope_opens_only_where_it_belongs(env: ChannelEnv) -> None:
    one = await env.agent()
    await env.channels.save(one, SLACK)
    await env.db.write(lambda connection: connection.execute(agent_channels.update().values(channel="telegram")))
    with pytest.raises(UnsealFailed):
        await env.channels.get_channels(one)
    assert await env.channels.get_private_values(one) == {}


async def test_changes_are_recorded_without_tokens(env: ChannelEnv) -> None:
    recorded: list[DataChange] = []
    env.db.add_commit_hook(lambda connection: recorded.extend(take_changes(connection)))
    one = await env.agent()
    recorded.clear()
    await env.channels.save(one, SLACK)
    await env.channels.remove(one, SLACK.name)
    await env.channels.remove(one, SLACK.name)
    assert recorded == [
        DataChange("channel", "changed", "slack", agent_id=one, data={"action": "saved"}),
        DataChange("channel", "changed", "slack", agent_id=one, data={"action": "removed"}),
    ]
