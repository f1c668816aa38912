import asyncio

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from roost.agents.models.gateway import store
from roost.agents.models.gateway.model import ModelUsage
from roost.agents.models.gateway.service import UsageMeter
from roost.core.db import Database
from tests.drivers.model.local import until

DAY = "2026-11-21"


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def dialect(request: pytest.FixtureRequest) -> str:
    return request.param


def _usage(agent: str = "a", model: str = "m", day: str = DAY, tenant: str = "t") -> ModelUsage:
    return ModelUsage(tenant, agent, model, day, 1, 10, 3)


async def _written(
    database: Database, tenant: str = "t", agent: str | None = None, since: str = ""
) -> list[ModelUsage]:
    return await database.read(lambda connection: store.list_usage(connection, tenant, agent, since))


async def test_counts_add_up_in_memory_and_in_the_table(database: Database) -> None:
    meter = UsageMeter(database)
    for _ in range(2):
        for _ in range(3):
            meter.add(_usage())
        meter.add(_usage(model="n"))
        await meter.flush()
    assert await _written(database) == [
        ModelUsage("t", "a", "m", DAY, 6, 60, 18),
        ModelUsage("t", "a", "n", DAY, 2, 20, 6),
    ]


async def test_usage_is_kept_apart_by_tenant_agent_and_day(database: Database) -> None:
    meter = UsageMeter(database)
    for usage in (_usage(), _usage(agent=""), _usage(day="2026-11-20"), _usage(tenant="other")):
        meter.add(usage)
    await meter.flush()
    assert [(usage.day, usage.agent_id) for usage in await _written(database)] == [
        (DAY, ""),
        (DAY, "a"),
        ("2026-11-20", "a"),
    ]
    assert len(await _written(database, agent="a")) == 2
    assert len(await _written(database, agent="a", since=DAY)) == 1
    assert len(await _written(database, tenant="other")) == 1
    assert await _written(database, tenant="none") == []


async def test_large_counts_fit(database: Database) -> None:
    meter = UsageMeter(database)
    for _ in range(3):
        meter.add(ModelUsage("t", "a", "m", DAY, 1, 2**40, 2**40))
        await meter.flush()
    assert (await _written(database))[0].prompt_tokens == 3 * 2**40


async def test_processes_count_into_the_same_rows(database: Database) -> None:
    meters = [UsageMeter(database) for _ in range(4)]
    for number in range(20):
        for meter in meters:
            meter.add(_usage(model=f"m{number % 5}"))
        await asyncio.gather(*(meter.flush() for meter in meters))
    assert [usage.requests for usage in await _written(database)] == [16] * 5


async def test_a_clean_stop_loses_nothing(database: Database) -> None:
    meter = UsageMeter(database)
    meter.start()
    meter.add(_usage())
    await meter.stop()
    assert await _written(database) == [_usage()]


async def test_usage_that_cannot_be_written_is_kept(database: Database) -> None:
    def rename(old: str, new: str) -> None:
        database.run(lambda connection: connection.execute(sa.text(f"ALTER TABLE {old} RENAME TO {new}")))

    meter = UsageMeter(database)
    meter.start()
    rename("model_usage", "gone")
    meter.add(_usage())
    with capture_logs() as logs:
        await until(lambda: logs)
    assert logs[0]["task"] == "model usage"
    meter.add(_usage())
    rename("gone", "model_usage")
    await meter.stop()
    assert (await _written(database))[0].requests == 2


async def test_a_caller_who_gives_up_does_not_change_what_is_counted(database: Database) -> None:
    meter = UsageMeter(database)
    for _ in range(10):
        meter.add(_usage())
        flushing = asyncio.ensure_future(meter.flush())
        await asyncio.sleep(0)
        flushing.cancel()
        await asyncio.gather(flushing, return_exceptions=True)
    await meter.flush()
    assert (await _written(database))[0].requests == 10
