"""Questions about what was served: by attribute and by day, filtered, ordered; of one's own gateways only."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from roost.core import clock
from roost.core.db import Database
from roost.storage.analytics.hit_counter import GatewayHitCounter
from roost.storage.analytics.model import UNKNOWN, HitCount
from roost.storage.analytics.query import (
    AnalyticsDimension,
    AnalyticsFilter,
    AnalyticsInterval,
    AnalyticsMetric,
    AnalyticsOrder,
    DimensionCount,
    PeriodCount,
)
from roost.storage.analytics.service import AnalyticsService
from roost.storage.content.model import ContentNetwork
from roost.storage.gateways.errors import GatewayNotFound
from roost.storage.gateways.model import StorageGateway
from roost.storage.gateways.service import StorageGatewayService
from roost.storage.unixfs.cid import Cid
from tests.storage.storage_env import StorageEnv

ONE, TWO = Cid.for_block(0x55, b"one"), Cid.for_block(0x70, b"two", version=0)
FIRST = datetime(2026, 3, 1, 12, tzinfo=UTC)  # a Sunday
MOST = AnalyticsOrder()


class Days:
    """A tenant's gateways over some days."""

    def __init__(self, env: StorageEnv, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tenant, self.other = env.tenant_id, env.other_id
        self.gateways = StorageGatewayService(database)
        self.counter = GatewayHitCounter(database, 90)
        self.analytics = AnalyticsService(database, self.gateways, self.counter, 90)
        self._patch = monkeypatch

    def come(self, day: int) -> None:
        self._patch.setattr(clock, "utc_now", lambda: FIRST + timedelta(days=day))

    def serve(self, gateway: StorageGateway, cid: Cid, sent: int, agent: str = "curl", status: int = 200) -> None:
        headers = {"user-agent": agent, "referer": f"https://{agent}.example/"}
        self.counter.served(gateway.tenant_id, gateway.id, ContentNetwork.PUBLIC, cid, "f", status, headers, sent)

    async def top(
        self, chosen: AnalyticsFilter, by: AnalyticsDimension = AnalyticsDimension.CID, order: AnalyticsOrder = MOST
    ) -> list[DimensionCount]:
        return list(await self.analytics.top(self.tenant, chosen, by, order))


@pytest.fixture
async def days(env: StorageEnv, database: Database, monkeypatch: pytest.MonkeyPatch) -> Days:
    """Today is the fourth of March."""
    made = Days(env, database, monkeypatch)
    made.come(0)
    a, b, theirs = [
        await made.gateways.create(tenant, f"gate-{number}")
        for number, tenant in enumerate((made.tenant, made.tenant, made.other))
    ]
    made.serve(a, ONE, 100)
    made.serve(theirs, ONE, 1_000_000)
    made.come(1)
    made.serve(a, ONE, 0, status=304)
    made.serve(a, TWO, 1000, "wget")
    made.come(3)
    made.serve(b, TWO, 5000)
    return made


async def test_what_was_asked_for_most(days: Days) -> None:
    one, two = DimensionCount(str(ONE), HitCount(2, 100)), DimensionCount(str(TWO), HitCount(2, 6000))
    assert await days.top(AnalyticsFilter()) == sorted([one, two], key=lambda share: share.value)
    assert await days.top(AnalyticsFilter(), order=AnalyticsOrder(AnalyticsMetric.BANDWIDTH)) == [two, one]
    assert await days.top(AnalyticsFilter(), order=AnalyticsOrder(AnalyticsMetric.BANDWIDTH, ascending=True)) == [
        one,
        two,
    ]
    assert await days.top(AnalyticsFilter(), order=AnalyticsOrder(AnalyticsMetric.BANDWIDTH, limit=1)) == [two]
    assert await days.top(AnalyticsFilter(), AnalyticsDimension.USER_AGENT) == [
        DimensionCount("curl", HitCount(3, 5100)),
        DimensionCount("wget", HitCount(1, 1000)),
    ]
    assert (await days.top(AnalyticsFilter(), AnalyticsDimension.REFERER))[1].value == "https://wget.example"
    assert await days.top(AnalyticsFilter(), AnalyticsDimension.FILE_NAME) == [DimensionCount("f", HitCount(4, 6100))]


async def test_only_what_is_meant_counts(days: Days) -> None:
    async def total(chosen: AnalyticsFilter) -> tuple[int, int]:
        tally, _ = await days.analytics.series(days.tenant, chosen, AnalyticsInterval.DAY, MOST)
        assert [share.tally for share in await days.top(chosen, AnalyticsDimension.COUNTRY)] == [tally] * (
            tally.requests > 0
        )
        return tally.requests, tally.bandwidth

    assert await total(AnalyticsFilter()) == (4, 6100)
    assert await total(AnalyticsFilter(gateway="gate-0")) == (3, 1100)
    assert await total(AnalyticsFilter(gateway="https://GATE-1.gateways.example:8642")) == (1, 5000)
    assert await total(AnalyticsFilter(since=date(2026, 3, 2), until=date(2026, 3, 3))) == (2, 1000)
    assert await total(AnalyticsFilter(status=304)) == (1, 0)
    assert await total(AnalyticsFilter(values={AnalyticsDimension.CID: [str(one) for one in TWO.spellings()]})) == (
        2,
        6000,
    )
    assert await total(
        AnalyticsFilter(values={AnalyticsDimension.USER_AGENT: ["wget"], AnalyticsDimension.CID: [str(ONE)]})
    ) == (0, 0)
    assert await total(AnalyticsFilter(values={AnalyticsDimension.COUNTRY: [UNKNOWN]})) == (4, 6100)
    assert await total(AnalyticsFilter(values={AnalyticsDimension.REGION: ["Bavaria"]})) == (0, 0)


async def test_days_and_weeks(days: Days) -> None:
    async def series(interval: AnalyticsInterval, order: AnalyticsOrder = MOST) -> list[PeriodCount]:
        total, periods = await days.analytics.series(
            days.tenant, AnalyticsFilter(since=date(2026, 3, 1)), interval, order
        )
        assert total == HitCount(4, 6100)
        return list(periods)

    first, second, third, fourth = (
        PeriodCount(date(2026, 3, day), tally)
        for day, tally in ((1, HitCount(1, 100)), (2, HitCount(2, 1000)), (3, HitCount()), (4, HitCount(1, 5000)))
    )
    assert await series(AnalyticsInterval.DAY) == [fourth, third, second, first]
    assert await series(AnalyticsInterval.DAY, AnalyticsOrder(ascending=True, limit=2)) == [first, second]
    assert await series(AnalyticsInterval.DAY, AnalyticsOrder(AnalyticsMetric.REQUESTS)) == [
        second,
        fourth,
        first,
        third,
    ]
    assert await series(AnalyticsInterval.DAY, AnalyticsOrder(AnalyticsMetric.BANDWIDTH, ascending=True)) == [
        third,
        first,
        second,
        fourth,
    ]
    assert await series(AnalyticsInterval.WEEK) == [
        PeriodCount(date(2026, 3, 2), HitCount(3, 6000)),
        PeriodCount(date(2026, 2, 23), HitCount(1, 100)),
    ]


async def test_tenants_are_kept_apart(days: Days) -> None:
    theirs = await days.analytics.top(days.other, AnalyticsFilter(), AnalyticsDimension.CID, MOST)
    assert theirs == [DimensionCount(str(ONE), HitCount(1, 1_000_000))]
    for name in ("gate-2", "nobodys", "gate-2.gateways.example", "", "."):
        with pytest.raises(GatewayNotFound):
            await days.top(AnalyticsFilter(gateway=name))


async def test_a_gateway_that_is_gone_still_counts(days: Days) -> None:
    gate = await days.gateways.by_domain("gate-1")
    await days.gateways.delete(days.tenant, gate.id)
    assert sum(share.tally.requests for share in await days.top(AnalyticsFilter())) == 4


async def test_what_is_old_goes(days: Days, database: Database) -> None:
    days.come(3)
    assert await days.analytics.expire() == 0
    short = AnalyticsService(database, days.gateways, days.counter, 3)
    assert [
        share.tally.requests
        for share in await short.top(days.tenant, AnalyticsFilter(), AnalyticsDimension.FILE_NAME, MOST)
    ] == [3]
    assert await short.expire() == 2
    assert await short.expire() == 0
    assert sum(share.tally.requests for share in await days.top(AnalyticsFilter())) == 3
    none = AnalyticsService(database, days.gateways, days.counter, 0)
    assert await none.expire() == 3
    assert await days.top(AnalyticsFilter()) == []


async def test_filters_and_attributes_go_together(days: Days) -> None:
    chosen = replace(AnalyticsFilter(), gateway="gate-0", values={AnalyticsDimension.CID: [str(ONE)]})
    assert await days.top(chosen, AnalyticsDimension.USER_AGENT) == [DimensionCount("curl", HitCount(2, 100))]
