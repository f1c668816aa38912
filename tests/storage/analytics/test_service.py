"""Questions about what was served: by attribute and by day, filtered, ordered; of one's own gateways only."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from roost.core import clock
from roost.core.db import Database
from roost.storage.analytics.counter import Counter
from roost.storage.analytics.model import UNKNOWN, Tally
from roost.storage.analytics.question import (
    Attribute,
    Chosen,
    Interval,
    Measure,
    Order,
    Period,
    Share,
)
from roost.storage.analytics.service import Analytics
from roost.storage.content.model import Network
from roost.storage.gateways.errors import GatewayMissing
from roost.storage.gateways.model import StorageGateway
from roost.storage.gateways.service import Gateways
from roost.storage.unixfs.cid import Cid
from tests.storage.house import House

ONE, TWO = Cid.of(0x55, b"one"), Cid.of(0x70, b"two", version=0)
FIRST = datetime(2026, 3, 1, 12, tzinfo=UTC)  # a Sunday
MOST = Order()


class Days:
    """A tenant's gateways over some days."""

    def __init__(self, place: House, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tenant, self.other = place.tenant_id, place.other_id
        self.gateways = Gateways(database)
        self.counter = Counter(database, 90)
        self.analytics = Analytics(database, self.gateways, self.counter, 90)
        self._patch = monkeypatch

    def come(self, day: int) -> None:
        self._patch.setattr(clock, "now", lambda: FIRST + timedelta(days=day))

    def serve(self, gateway: StorageGateway, cid: Cid, sent: int, agent: str = "curl", status: int = 200) -> None:
        headers = {"user-agent": agent, "referer": f"https://{agent}.example/"}
        self.counter.served(gateway.tenant_id, gateway.id, Network.PUBLIC, cid, "f", status, headers, sent)

    async def top(self, chosen: Chosen, by: Attribute = Attribute.CID, order: Order = MOST) -> list[Share]:
        return list(await self.analytics.top(self.tenant, chosen, by, order))


@pytest.fixture
async def days(place: House, database: Database, monkeypatch: pytest.MonkeyPatch) -> Days:
    """Today is the fourth of March."""
    made = Days(place, database, monkeypatch)
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
    one, two = Share(str(ONE), Tally(2, 100)), Share(str(TWO), Tally(2, 6000))
    assert await days.top(Chosen()) == sorted([one, two], key=lambda share: share.value)
    assert await days.top(Chosen(), order=Order(Measure.BANDWIDTH)) == [two, one]
    assert await days.top(Chosen(), order=Order(Measure.BANDWIDTH, ascending=True)) == [one, two]
    assert await days.top(Chosen(), order=Order(Measure.BANDWIDTH, limit=1)) == [two]
    assert await days.top(Chosen(), Attribute.USER_AGENT) == [
        Share("curl", Tally(3, 5100)),
        Share("wget", Tally(1, 1000)),
    ]
    assert (await days.top(Chosen(), Attribute.REFERER))[1].value == "https://wget.example"
    assert await days.top(Chosen(), Attribute.FILE_NAME) == [Share("f", Tally(4, 6100))]


async def test_only_what_is_meant_counts(days: Days) -> None:
    async def total(chosen: Chosen) -> tuple[int, int]:
        tally, _ = await days.analytics.series(days.tenant, chosen, Interval.DAY, MOST)
        assert [share.tally for share in await days.top(chosen, Attribute.COUNTRY)] == [tally] * (tally.requests > 0)
        return tally.requests, tally.bandwidth

    assert await total(Chosen()) == (4, 6100)
    assert await total(Chosen(gateway="gate-0")) == (3, 1100)
    assert await total(Chosen(gateway="https://GATE-1.gateways.example:8642")) == (1, 5000)
    assert await total(Chosen(since=date(2026, 3, 2), until=date(2026, 3, 3))) == (2, 1000)
    assert await total(Chosen(status=304)) == (1, 0)
    assert await total(Chosen(values={Attribute.CID: [str(one) for one in TWO.spellings()]})) == (2, 6000)
    assert await total(Chosen(values={Attribute.USER_AGENT: ["wget"], Attribute.CID: [str(ONE)]})) == (0, 0)
    assert await total(Chosen(values={Attribute.COUNTRY: [UNKNOWN]})) == (4, 6100)
    assert await total(Chosen(values={Attribute.REGION: ["Bavaria"]})) == (0, 0)


async def test_days_and_weeks(days: Days) -> None:
    async def series(interval: Interval, order: Order = MOST) -> list[Period]:
        total, periods = await days.analytics.series(days.tenant, Chosen(since=date(2026, 3, 1)), interval, order)
        assert total == Tally(4, 6100)
        return list(periods)

    first, second, third, fourth = (
        Period(date(2026, 3, day), tally)
        for day, tally in ((1, Tally(1, 100)), (2, Tally(2, 1000)), (3, Tally()), (4, Tally(1, 5000)))
    )
    assert await series(Interval.DAY) == [fourth, third, second, first]
    assert await series(Interval.DAY, Order(ascending=True, limit=2)) == [first, second]
    assert await series(Interval.DAY, Order(Measure.REQUESTS)) == [second, fourth, first, third]
    assert await series(Interval.DAY, Order(Measure.BANDWIDTH, ascending=True)) == [third, first, second, fourth]
    assert await series(Interval.WEEK) == [
        Period(date(2026, 3, 2), Tally(3, 6000)),
        Period(date(2026, 2, 23), Tally(1, 100)),
    ]


async def test_tenants_are_kept_apart(days: Days) -> None:
    theirs = await days.analytics.top(days.other, Chosen(), Attribute.CID, MOST)
    assert theirs == [Share(str(ONE), Tally(1, 1_000_000))]
    for name in ("gate-2", "nobodys", "gate-2.gateways.example", "", "."):
        with pytest.raises(GatewayMissing):
            await days.top(Chosen(gateway=name))


async def test_a_gateway_that_is_gone_still_counts(days: Days) -> None:
    gate = await days.gateways.by_domain("gate-1")
    await days.gateways.delete(days.tenant, gate.id)
    assert sum(share.tally.requests for share in await days.top(Chosen())) == 4


async def test_what_is_old_goes(days: Days, database: Database) -> None:
    days.come(3)
    assert await days.analytics.expire() == 0
    short = Analytics(database, days.gateways, days.counter, 3)
    assert [share.tally.requests for share in await short.top(days.tenant, Chosen(), Attribute.FILE_NAME, MOST)] == [3]
    assert await short.expire() == 2
    assert await short.expire() == 0
    assert sum(share.tally.requests for share in await days.top(Chosen())) == 3
    none = Analytics(database, days.gateways, days.counter, 0)
    assert await none.expire() == 3
    assert await days.top(Chosen()) == []


async def test_filters_and_attributes_go_together(days: Days) -> None:
    chosen = replace(Chosen(), gateway="gate-0", values={Attribute.CID: [str(ONE)]})
    assert await days.top(chosen, Attribute.USER_AGENT) == [Share("curl", Tally(2, 100))]
