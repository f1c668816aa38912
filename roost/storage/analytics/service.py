"""Answers what a tenant's gateways served, as far back as it is kept. What this server counted counts at once."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from typing import TypeVar

from sqlalchemy import Connection

from roost.core import clock
from roost.core.db import Database
from roost.storage.analytics import question, store
from roost.storage.analytics.counter import Counter
from roost.storage.analytics.model import UNKNOWN, Tally
from roost.storage.analytics.question import (
    Attribute,
    Chosen,
    Days,
    Interval,
    Meant,
    Measure,
    Order,
    Period,
    Share,
)
from roost.storage.gateways.errors import GatewayMissing
from roost.storage.gateways.service import Gateways

T = TypeVar("T")

_AT_ONCE = 2
"""Questions that are answered at once: each goes over many lines."""
_FORGOTTEN_AT_ONCE = 1000
_ELSEWHERE = frozenset({Attribute.COUNTRY, Attribute.REGION})


class Analytics:
    def __init__(self, db: Database, gateways: Gateways, counter: Counter, kept: int) -> None:
        """kept: for how many days."""
        self._db = db
        self._gateways = gateways
        self._counter = counter
        self._kept = kept
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def top(self, tenant_id: str, chosen: Chosen, attribute: Attribute, order: Order) -> Sequence[Share]:
        """What was asked for most, told apart by an attribute. Raises GatewayMissing, InvalidPeriod."""
        if attribute in _ELSEWHERE:
            total = _sum(list((await self._by_day(tenant_id, chosen))[1].values()))
            return [Share(UNKNOWN, total)] if total.requests else []
        meant = await self._meant(tenant_id, chosen)
        return await self._survey(lambda connection: store.top(connection, meant, attribute, order))

    async def series(
        self, tenant_id: str, chosen: Chosen, interval: Interval, order: Order
    ) -> tuple[Tally, Sequence[Period]]:
        """The sum of all, and some of the periods. Raises GatewayMissing, InvalidPeriod."""
        days, found = await self._by_day(tenant_id, chosen)
        tallies = {begin: Tally() for begin in days.begins(interval)}
        for day, tally in found.items():
            tallies[interval.begin(day)].add(tally)
        periods = [Period(begin, tally) for begin, tally in tallies.items()]
        periods.sort(key=lambda period: period.begin, reverse=not order.ascending or order.measure is not None)
        if order.measure is not None:
            measure = order.measure
            periods.sort(key=lambda period: _measured(period.tally, measure), reverse=not order.ascending)
        return _sum(list(tallies.values())), periods[: order.limit]

    async def expire(self) -> int:
        """Delete some of what is kept no longer; how many lines."""
        first = clock.now().date() - timedelta(days=self._kept - 1)
        return await self._db.write(lambda connection: store.forget(connection, first, _FORGOTTEN_AT_ONCE))

    async def _by_day(self, tenant_id: str, chosen: Chosen) -> tuple[Days, dict[date, Tally]]:
        meant = await self._meant(tenant_id, chosen)
        return meant.days, dict(await self._survey(lambda connection: store.by_day(connection, meant)))

    async def _meant(self, tenant_id: str, chosen: Chosen) -> Meant:
        days = question.days(chosen, clock.now().date(), self._kept)
        if chosen.gateway is None:
            return Meant(tenant_id, None, days, chosen)
        label = chosen.gateway.partition("://")[2] or chosen.gateway
        gateway = await self._gateways.by_domain(label.partition(".")[0].lower())
        if gateway.tenant_id != tenant_id:
            raise GatewayMissing
        return Meant(tenant_id, gateway.id, days, chosen)

    async def _survey(self, look: Callable[[Connection], T]) -> T:
        await self._counter.flush()
        async with self._turns:
            return await self._db.survey(look)


def _sum(tallies: Sequence[Tally]) -> Tally:
    total = Tally()
    for tally in tallies:
        total.add(tally)
    return total


def _measured(tally: Tally, measure: Measure) -> int:
    return tally.requests if measure is Measure.REQUESTS else tally.bandwidth
