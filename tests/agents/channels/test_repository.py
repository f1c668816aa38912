"""The book of channels on both databases: sealed, one token once, gone with its agent."""

from dataclasses import replace

import pytest

from roost.agents.channels.errors import BotTokenInUse
from roost.agents.channels.model import Channel
from roost.agents.channels.repository import ChannelRepository
from roost.agents.channels.store import agent_channels
from roost.agents.registry.errors import AgentNotFound
from roost.agents.registry.model import AgentProfile
from roost.agents.registry.repository import AgentRepository
from roost.core.db import Connection, Database
from roost.core.seal import UnsealFailed
from roost.core.sensitive import Sensitive
from roost.identity import tenants
from roost.identity.caller import Plan
from tests.agents.lifecycle.lifecycle_env import SEALER

SLACK = Channel("slack", Sensitive("xoxb-1"), Sensitive("xapp-1"), "pairing", ("U1",), enabled=True, bot_name="b")
WHATSAPP = Channel("whatsapp", Sensitive("any"), None, "open", (), enabled=False)


class Shelf:
    def __init__(self, db: Database) -> None:
        self.db = db
        self.roster = AgentRepository(db, SEALER, {Plan.PAID: 20})
        self.book = ChannelRepository(db, SEALER, self.roster)

    async def agent(self) -> str:
        def add(connection: Connection) -> str:
            tenant = tenants.ensure_tenant(connection, "acme", Plan.PAID)
            return self.roster.create(connection, tenant.id, AgentProfile("a"), "fake", "1").id

        return await self.db.write(add)


@pytest.fixture
def shelf(database: Database) -> Shelf:
    return Shelf(database)


async def test_there_and_back(shelf: Shelf) -> None:
    one = await shelf.agent()
    await shelf.book.save(one, SLACK)
    await shelf.book.save(one, WHATSAPP)
    assert await shelf.book.get_channels(one) == {"slack": SLACK, "whatsapp": WHATSAPP}
    assert await shelf.book.get_setups(one) == {"slack": SLACK.to_setup()}
    assert set(await shelf.book.list_private_values(one)) == {
        Sensitive("xoxb-1"),
        Sensitive("xapp-1"),
        Sensitive("any"),
    }
    changed = replace(SLACK, allow_from=(), bot_name=None)
    await shelf.book.save(one, changed)
    await shelf.book.remove(one, "whatsapp")
    assert await shelf.book.get_channels(one) == {"slack": changed}


async def test_one_token_is_one_agents(shelf: Shelf) -> None:
    one, other = await shelf.agent(), await shelf.agent()
    await shelf.book.save(one, SLACK)
    await shelf.book.save(one, WHATSAPP)
    await shelf.book.save(other, WHATSAPP)
    for taken in (SLACK, replace(SLACK, bot_token=Sensitive("xoxb-2")), replace(SLACK, app_token=Sensitive("xapp-2"))):
        with pytest.raises(BotTokenInUse):
            await shelf.book.save(other, taken)
    await shelf.db.write(lambda connection: ChannelRepository.remove_all(connection, one))
    assert await shelf.book.get_channels(one) == {}
    await shelf.book.save(other, SLACK)


async def test_an_agent_that_is_gone_gets_none(shelf: Shelf) -> None:
    one = await shelf.agent()
    await shelf.db.write(lambda connection: shelf.roster.mark_deleted(connection, one))
    with pytest.raises(AgentNotFound):
        await shelf.book.save(one, SLACK)


async def test_an_envelope_opens_only_where_it_belongs(shelf: Shelf) -> None:
    one = await shelf.agent()
    await shelf.book.save(one, SLACK)
    await shelf.db.write(lambda connection: connection.execute(agent_channels.update().values(channel="telegram")))
    with pytest.raises(UnsealFailed):
        await shelf.book.get_channels(one)
    assert await shelf.book.list_private_values(one) == ()
