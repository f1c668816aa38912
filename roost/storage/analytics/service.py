"""Answers what a tenant's gateways served, as far back as it is kept. What this server counted counts at once."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from typing import TypeVar

from sqlalchemy import Connection

from roost.core import clock
from roost.core.db import Database
from roost.storage.analytics import query, store
from roost.storage.analytics.hit_counter import GatewayHitCounter
from roost.storage.analytics.model import UNKNOWN, HitCount
from roost.storage.analytics.query import (
    AnalyticsDimension,
    AnalyticsFilter,
    AnalyticsInterval,
    AnalyticsMetric,
    AnalyticsOrder,
    AnalyticsQuery,
    DayRange,
    DimensionCount,
    PeriodCount,
)
from roost.storage.gateways.errors import GatewayNotFound
from roost.storage.gateways.service import StorageGatewayService

T = TypeVar("T")

_AT_ONCE = 2
"""Questions that are answered at once: each goes over many lines."""
_FORGOTTEN_AT_ONCE = 1000
_ELSEWHERE = frozenset({AnalyticsDimension.COUNTRY, AnalyticsDimension.REGION})


class AnalyticsService:
    def __init__(self, db: Database, gateways: StorageGatewayService, counter: GatewayHitCounter, kept: int) -> None:
        """kept: for how many days."""
        self._db = db
        self._gateways = gateways
        self._counter = counter
        self._kept = kept
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def top(
        self, tenant_id: str, chosen: AnalyticsFilter, attribute: AnalyticsDimension, order: AnalyticsOrder
    ) -> Sequence[DimensionCount]:
        """What was asked for most, told apart by an attribute. Raises GatewayMissing, InvalidPeriod."""
        if attribute in _ELSEWHERE:
            total = _sum(list((await self._by_day(tenant_id, chosen))[1].values()))
            return [DimensionCount(UNKNOWN, total)] if total.requests else []
        meant = await self._meant(tenant_id, chosen)
        return await self._survey(lambda connection: store.top(connection, meant, attribute, order))

    async def series(
        self, tenant_id: str, chosen: AnalyticsFilter, interval: AnalyticsInterval, order: AnalyticsOrder
    ) -> tuple[HitCount, Sequence[PeriodCount]]:
        """The sum of all, and some of the periods. Raises GatewayMissing, InvalidPeriod."""
        days, found = await self._by_day(tenant_id, chosen)
        tallies = {begin: HitCount() for begin in days.begins(interval)}
        for day, tally in found.items():
            tallies[interval.begin(day)].add(tally)
        periods = [PeriodCount(begin, tally) for begin, tally in tallies.items()]
        periods.sort(key=lambda period: period.begin, reverse=not order.ascending or order.measure is not None)
        if order.measure is not None:
            measure = order.measure
            periods.sort(key=lambda period: _measured(period.tally, measure), reverse=not order.ascending)
        return _sum(list(tallies.values())), periods[: order.limit]

    async def expire(self) -> int:
        """Delete some of what is kept no longer; how many lines."""
        first = clock.utc_now().date() - timedelta(days=self._kept - 1)
        return await self._db.write(lambda connection: store.forget(connection, first, _FORGOTTEN_AT_ONCE))

    async def _by_day(self, tenant_id: str, chosen: AnalyticsFilter) -> tuple[DayRange, dict[date, HitCount]]:
        meant = await self._meant(tenant_id, chosen)
        return meant.days, dict(await self._survey(lambda connection: store.by_day(connection, meant)))

    async def _meant(self, tenant_id: str, chosen: AnalyticsFilter) -> AnalyticsQuery:
        days = query.days(chosen, clock.utc_now().date(), self._kept)
        if chosen.gateway is None:
            return AnalyticsQuery(tenant_id, None, days, chosen)
        label = chosen.gateway.partition("://")[2] or chosen.gateway
        gateway = await self._gateways.by_domain(label.partition(".")[0].lower())
        if gateway.tenant_id != tenant_id:
            raise GatewayNotFound
        return AnalyticsQuery(tenant_id, gateway.id, days, chosen)

    async def _survey(self, look: Callable[[Connection], T]) -> T:
        await self._counter.flush()
        async with self._turns:
            return await self._db.read_long(look)


def _sum(tallies: Sequence[HitCount]) -> HitCount:
    total = HitCount()
    for tally in tallies:
        total.add(tally)
    return total


def _measured(tally: HitCount, measure: AnalyticsMetric) -> int:
    return tally.requests if measure is AnalyticsMetric.REQUESTS else tally.bandwidth
