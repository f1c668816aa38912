"""Answer queries about the hits of a tenant's gateways, including those that this server still has in memory."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import TypeVar

from sqlalchemy import Connection

from roost.core import clock
from roost.core.db import Database
from roost.storage.gateways.analytics import store
from roost.storage.gateways.analytics.hit_counter import GatewayHitCounter
from roost.storage.gateways.analytics.model import (
    AnalyticsDimension,
    AnalyticsInterval,
    AnalyticsQuery,
    HitCount,
    period_start,
)
from roost.storage.gateways.model import GatewayNotFound
from roost.storage.gateways.service import StorageGatewayService

T = TypeVar("T")

_EXPIRE_BATCH = 1000


@dataclass(frozen=True)
class AnalyticsService:
    _db: Database
    _gateways: StorageGatewayService
    _counter: GatewayHitCounter
    _retention_days: int

    async def list_top_values(
        self, tenant_id: str, query: AnalyticsQuery, dimension: AnalyticsDimension
    ) -> Mapping[str, HitCount]:
        """Return the largest counts by value, in the order of the query. Raises GatewayNotFound."""
        resolved = await self._resolve(tenant_id, query)
        return await self._read(tenant_id, lambda c: store.sum_hits(c, tenant_id, resolved, dimension, resolved.limit))

    async def list_periods(
        self, tenant_id: str, query: AnalyticsQuery, interval: AnalyticsInterval
    ) -> tuple[HitCount, Mapping[date, HitCount]]:
        """Return the total, and the counts by the first day of the period, in the order of the query.

        The total includes the periods beyond the limit. Raises GatewayNotFound.
        """
        resolved = await self._resolve(tenant_id, query)
        counts = await self._read(tenant_id, lambda connection: store.sum_hits(connection, tenant_id, resolved, "day"))
        days = range((resolved.last_day - resolved.first_day).days + 1)
        periods = {period_start(resolved.first_day + timedelta(days=day), interval): HitCount() for day in days}
        total = HitCount()
        for day, count in counts.items():
            periods[period_start(date.fromisoformat(day), interval)].add(count)
            total.add(count)
        newest_first = query.sort_by is not None or not query.ascending
        ordered = sorted(periods.items(), key=lambda period: period[0], reverse=newest_first)
        if (metric := query.sort_by) is not None:
            ordered.sort(key=lambda period: getattr(period[1], metric), reverse=not query.ascending)
        return total, dict(ordered[: query.limit])

    async def expire(self) -> int:
        """Delete a batch of rows that are older than the retention; return their number."""
        oldest = self._oldest_day()
        return await self._db.write(lambda connection: store.delete_days_before(connection, oldest, _EXPIRE_BATCH))

    async def _resolve(self, tenant_id: str, query: AnalyticsQuery) -> AnalyticsQuery:
        """Limit the days to the retention and filter by the id of the gateway."""
        first, last = max(query.first_day, self._oldest_day()), min(query.last_day, clock.utc_now().date())
        filters = dict(query.filters)
        if query.gateway is not None:
            address = query.gateway.partition("://")[2] or query.gateway
            gateway = await self._gateways.get_by_domain(address.partition(".")[0].lower())
            if gateway.tenant_id != tenant_id:
                raise GatewayNotFound
            filters["gateway_id"] = [gateway.id]
        return replace(query, first_day=first, last_day=last, filters=filters)

    async def _read(self, tenant_id: str, read: Callable[[Connection], T]) -> T:
        await self._counter.flush()
        return await self._db.read_long(read, tenant_id)

    def _oldest_day(self) -> date:
        return clock.utc_now().date() - timedelta(days=self._retention_days - 1)
