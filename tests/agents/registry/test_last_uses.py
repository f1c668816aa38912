"""Last uses of agents on both databases: kept in memory, written seldom, and the latest of several servers."""

from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa

from roost.agents.registry import store
from roost.agents.registry.last_uses import LastUses
from roost.agents.registry.model import AgentProfile
from roost.agents.registry.repository import AgentRepository
from roost.core import clock
from roost.core.db import Database
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.identity import tenants
from roost.identity.caller import Plan

SEALER = Sealer(Sensitive(bytes(32)))
NOON = datetime.fromisoformat("2026-01-02T12:00:00Z")


@pytest.fixture
def repository(database: Database) -> AgentRepository:
    return AgentRepository(database, SEALER, {Plan.FREE: 5}, "host")


def create(database: Database, repository: AgentRepository, tenant: str = "acme") -> tuple[str, str]:
    """Return the ids of a tenant and of a new agent of it."""

    def insert(connection: sa.Connection) -> tuple[str, str]:
        owner = tenants.ensure_tenant(connection, tenant)
        return owner.id, repository.create(connection, owner.id, AgentProfile("one"), "fake", "1").id

    return database.run(insert)


def set_time(monkeypatch: pytest.MonkeyPatch, minute: int) -> datetime:
    now = NOON + timedelta(minutes=minute)
    monkeypatch.setattr(clock, "utc_now", lambda: now)
    return now


async def test_uses_are_known_at_once_and_to_other_servers_after_a_flush(
    database: Database, repository: AgentRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tenant_id, ada), (_, bob) = create(database, repository), create(database, repository)
    other_id, eve = create(database, repository, "other")
    here, there = LastUses(database), LastUses(database)
    first = set_time(monkeypatch, 1)
    here.record(ada)
    here.record(eve)
    assert await here.list(tenant_id) == {ada: first}
    assert await here.list(other_id) == {eve: first}
    assert await there.list(tenant_id) == {}
    await here.flush()
    assert await there.list(tenant_id) == {ada: first}
    assert (await there.get(ada), await there.get(bob)) == (first, None)
    second = set_time(monkeypatch, 2)
    here.record(ada)
    assert await here.get(ada) == second


async def test_the_latest_use_counts_whichever_server_writes_last(
    database: Database, repository: AgentRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    tenant_id, ada = create(database, repository)
    early, late = LastUses(database), LastUses(database)
    set_time(monkeypatch, 1)
    early.record(ada)
    last = set_time(monkeypatch, 2)
    late.record(ada)
    await late.flush()
    await early.flush()
    assert await early.list(tenant_id) == {ada: last}


async def test_a_flush_writes_only_new_uses(database: Database, repository: AgentRepository) -> None:
    _, ada = create(database, repository)
    uses = LastUses(database)
    for _ in range(100):
        uses.record(ada)
    before = database.version
    await uses.flush()
    await uses.flush()
    assert database.version == before + 1


async def test_a_clean_stop_loses_nothing(database: Database, repository: AgentRepository) -> None:
    tenant_id, ada = create(database, repository)
    uses = LastUses(database)
    uses.start()
    uses.record(ada)
    await uses.stop()
    assert ada in await LastUses(database).list(tenant_id)


async def test_the_use_of_a_deleted_agent_is_dropped(database: Database, repository: AgentRepository) -> None:
    (tenant_id, ada), (_, bob) = create(database, repository), create(database, repository)
    uses = LastUses(database)
    for agent_id in (ada, bob):
        uses.record(agent_id)
    await uses.flush()
    uses.record(ada)
    await database.write(lambda connection: repository.purge(connection, ada))
    await uses.flush()
    assert list(await uses.list(tenant_id)) == [bob]
    assert await database.read(lambda connection: store.get_last_use(connection, ada)) is None
