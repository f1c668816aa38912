from datetime import date

import pytest

from roost.agents.models.gateway import store
from roost.agents.models.gateway.model import ModelUsage, UsageCount
from roost.core.db import Database

DAY = "2026-11-21"


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def dialect(request: pytest.FixtureRequest) -> str:
    return request.param


def _usage(agent: str = "a", model: str = "m", day: str = DAY, tenant: str = "t") -> ModelUsage:
    return ModelUsage(tenant, agent, model, day, 1, 10, 3)


async def test_usage_is_summed_by_a_column(database: Database) -> None:
    others = (_usage(tenant="other"), _usage(day="2026-11-19"), _usage(day="2026-11-22"))
    usages = (_usage(), _usage(day="2026-11-20"), _usage(model="n"), _usage(agent="b"), *others)
    await database.write(lambda connection: store.add_usage(connection, usages))

    async def summed(column: str, agent: str | None = None, limit: int = 10) -> dict[str, UsageCount]:
        days = (date(2026, 11, 20), date(2026, 11, 21))
        found = await database.read(lambda c: store.sum_usage(c, "t", agent, days, column, limit))
        return dict(found)

    assert await summed("day") == {DAY: UsageCount(3, 30, 9), "2026-11-20": UsageCount(1, 10, 3)}
    assert await summed("model") == {"m": UsageCount(3, 30, 9), "n": UsageCount(1, 10, 3)}
    assert await summed("agent_id") == {"a": UsageCount(3, 30, 9), "b": UsageCount(1, 10, 3)}
    assert await summed("agent_id", limit=1) == {"a": UsageCount(3, 30, 9)}
    assert await summed("model", agent="b") == {"m": UsageCount(1, 10, 3)}
    assert await summed("model", agent="none") == {}
