"""Queries about gateway hits: by dimension and by period, filtered and ordered; of the tenant's own gateways only."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from roost.core import clock
from roost.core.db import Database
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.cid import Cid
from roost.storage.gateways.analytics.model import (
    UNKNOWN,
    AnalyticsDimension,
    AnalyticsInterval,
    AnalyticsQuery,
    HitCount,
)
from roost.storage.gateways.analytics.service import AnalyticsService, GatewayHitCounter
from roost.storage.gateways.model import GatewayNotFound, StorageGateway
from roost.storage.gateways.service import StorageGatewayService
from tests.storage.storage_env import StorageEnv

ONE, TWO = Cid.for_block(0x55, b"one"), Cid.for_block(0x70, b"two", version=0)
FIRST = datetime(2026, 3, 1, 12, tzinfo=UTC)  # a Sunday
ALL = AnalyticsQuery(date(2026, 2, 3), date(2026, 3, 4), None, {}, None, ascending=False, limit=100)
BY_REQUESTS, BY_BANDWIDTH = (replace(ALL, sort_by=metric) for metric in ("requests", "bandwidth"))


class AnalyticsEnv:
    """Gateways of two tenants, and a clock that tests set."""

    def __init__(self, env: StorageEnv, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tenant, self.other = env.tenant_id, env.other_id
        self.gateways = StorageGatewayService(database)
        self.counter = GatewayHitCounter(database, 90)
        self.analytics = AnalyticsService(database, self.gateways, self.counter, 90)
        self._patch = monkeypatch

    def set_day(self, day: int) -> None:
        self._patch.setattr(clock, "utc_now", lambda: FIRST + timedelta(days=day))

    def serve(self, gateway: StorageGateway, cid: Cid, sent: int, agent: str = "curl", status: int = 200) -> None:
        headers = {"user-agent": agent, "referer": f"https://{agent}.example/"}
        self.counter.record_response(
            gateway.tenant_id, gateway.id, ContentNetwork.PUBLIC, cid, "f", status, headers, sent
        )

    async def top(self, query: AnalyticsQuery = ALL, by: AnalyticsDimension = "cid") -> list[tuple[str, HitCount]]:
        return list((await self.analytics.list_top_values(self.tenant, query, by)).items())


@pytest.fixture
async def served(env: StorageEnv, database: Database, monkeypatch: pytest.MonkeyPatch) -> AnalyticsEnv:
    """Hits of the first four days of March, the last of which is today."""
    made = AnalyticsEnv(env, database, monkeypatch)
    made.set_day(0)
    a, b, foreign = [
        await made.gateways.create(tenant, f"gate-{number}")
        for number, tenant in enumerate((made.tenant, made.tenant, made.other))
    ]
    made.serve(a, ONE, 100)
    made.serve(foreign, ONE, 1_000_000)
    made.set_day(1)
    made.serve(a, ONE, 0, status=304)
    made.serve(a, TWO, 1000, "wget")
    made.set_day(3)
    made.serve(b, TWO, 5000)
    return made


async def test_top_values_are_summed(served: AnalyticsEnv) -> None:
    one, two = (str(ONE), HitCount(2, 100)), (str(TWO), HitCount(2, 6000))
    assert await served.top() == sorted([one, two], key=lambda item: item[0])
    assert await served.top(BY_BANDWIDTH) == [two, one]
    assert await served.top(replace(BY_BANDWIDTH, ascending=True)) == [one, two]
    assert await served.top(replace(BY_BANDWIDTH, limit=1)) == [two]
    assert await served.top(by="user_agent") == [
        ("curl", HitCount(3, 5100)),
        ("wget", HitCount(1, 1000)),
    ]
    assert (await served.top(by="referer"))[1][0] == "https://wget.example"
    assert await served.top(by="file_name") == [("f", HitCount(4, 6100))]


@pytest.mark.parametrize(
    ("query", "requests", "bandwidth"),
    [
        (ALL, 4, 6100),
        (replace(ALL, gateway="gate-0"), 3, 1100),
        (replace(ALL, gateway="https://GATE-1.gateways.example:8642"), 1, 5000),
        (replace(ALL, first_day=date(2026, 3, 2), last_day=date(2026, 3, 3)), 2, 1000),
        (replace(ALL, first_day=date.max, last_day=date.max), 0, 0),
        (replace(ALL, first_day=date.min, last_day=date.min), 0, 0),
        (replace(ALL, filters={"status": [304]}), 1, 0),
        (replace(ALL, filters={"cid": [str(spelling) for spelling in TWO.spellings()]}), 2, 6000),
        (replace(ALL, filters={"user_agent": ["wget"], "cid": [str(ONE)]}), 0, 0),
        (replace(ALL, filters={"country": [UNKNOWN]}), 4, 6100),
        (replace(ALL, filters={"region": ["Bavaria"]}), 0, 0),
    ],
)
async def test_filters_select_periods_and_values(
    served: AnalyticsEnv, query: AnalyticsQuery, requests: int, bandwidth: int
) -> None:
    total, _ = await served.analytics.list_periods(served.tenant, query, "day")
    assert total == HitCount(requests, bandwidth)
    expected = [(UNKNOWN, total)] if requests else []
    assert await served.top(query, "country") == expected
    assert await served.top(query, "region") == expected


async def test_days_and_weeks(served: AnalyticsEnv) -> None:
    async def periods(interval: AnalyticsInterval, query: AnalyticsQuery = ALL) -> list[tuple[date, HitCount]]:
        march = replace(query, first_day=date(2026, 3, 1))
        total, found = await served.analytics.list_periods(served.tenant, march, interval)
        assert total == HitCount(4, 6100)
        return list(found.items())

    counts: Mapping[int, HitCount] = {
        1: HitCount(1, 100),
        2: HitCount(2, 1000),
        3: HitCount(),
        4: HitCount(1, 5000),
    }
    first, second, third, fourth = ((date(2026, 3, day), count) for day, count in counts.items())
    assert await periods("day") == [fourth, third, second, first]
    assert await periods("day", replace(ALL, ascending=True, limit=2)) == [first, second]
    assert await periods("day", BY_REQUESTS) == [second, fourth, first, third]
    assert await periods("day", replace(BY_BANDWIDTH, ascending=True)) == [third, first, second, fourth]
    assert await periods("week") == [(date(2026, 3, 2), HitCount(3, 6000)), (date(2026, 2, 23), HitCount(1, 100))]


async def test_tenants_are_isolated(served: AnalyticsEnv) -> None:
    foreign = await served.analytics.list_top_values(served.other, ALL, "cid")
    assert foreign == {str(ONE): HitCount(1, 1_000_000)}
    for name in ("gate-2", "absent", "gate-2.gateways.example", "", "."):
        with pytest.raises(GatewayNotFound):
            await served.top(replace(ALL, gateway=name))


async def test_hits_of_a_deleted_gateway_still_count(served: AnalyticsEnv) -> None:
    gateway = await served.gateways.get_by_domain("gate-1")
    await served.gateways.delete(served.tenant, gateway.id)
    assert sum(count.requests for _, count in await served.top()) == 4


async def test_hits_older_than_the_retention_are_deleted(served: AnalyticsEnv, database: Database) -> None:
    served.set_day(3)
    assert await served.analytics.expire() == 0
    short = AnalyticsService(database, served.gateways, served.counter, 3)
    kept = await short.list_top_values(served.tenant, ALL, "file_name")
    assert [count.requests for count in kept.values()] == [3]
    assert await short.expire() == 2
    assert await short.expire() == 0
    assert sum(count.requests for _, count in await served.top()) == 3
    disabled = AnalyticsService(database, served.gateways, served.counter, 0)
    assert await disabled.list_periods(served.tenant, ALL, "day") == (HitCount(), {})
    assert await disabled.expire() == 3
    assert await served.top() == []


async def test_filters_combine_with_dimensions(served: AnalyticsEnv) -> None:
    query = replace(ALL, gateway="gate-0", filters={"cid": [str(ONE)]})
    assert await served.top(query, "user_agent") == [("curl", HitCount(2, 100))]
