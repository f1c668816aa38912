"""Count the responses of gateways, and answer queries about them, with those that this server still has in memory."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import groupby
from typing import TypeVar

from roost.core import clock
from roost.core.db import Connection, Database
from roost.core.periodic import PeriodicFlusher
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.cid import Cid
from roost.storage.files import service as files
from roost.storage.gateways.analytics import model, store
from roost.storage.gateways.analytics.model import (
    MAX_FILE_NAME,
    MAX_USER_AGENT,
    UNKNOWN,
    AnalyticsDimension,
    AnalyticsInterval,
    AnalyticsQuery,
    Hit,
    HitCount,
    period_start,
)
from roost.storage.gateways.model import GatewayNotFound
from roost.storage.gateways.service import StorageGatewayService

MAX_PENDING, MAX_PENDING_OF_TENANT = 10_000, 2_000
"""Different hits in memory, of all tenants and of one."""
_INTERVAL_SECONDS = 2.0
_EXPIRE_BATCH = 1000

T = TypeVar("T")


class GatewayHitCounter(PeriodicFlusher):
    """Counts in memory, added to the database every two seconds; those of several servers add up.

    Memory is bounded, for each tenant and for all.
    """

    def __init__(self, db: Database, retention_days: int) -> None:
        """With a retention of 0 days nothing is counted."""
        super().__init__("gateway hits", _INTERVAL_SECONDS)
        self._db = db
        self._is_enabled = retention_days > 0
        self._pending: dict[Hit, HitCount] = {}
        self._pending_of_tenant: Counter[str] = Counter()

    def record_response(
        self,
        tenant_id: str,
        gateway_id: str,
        network: ContentNetwork,
        cid: Cid,
        name: str,
        status: int,
        headers: Mapping[str, str],
        sent: int,
    ) -> None:
        """Count a response to a request with these `headers`, after `sent` bytes of body."""
        if not self._is_enabled:
            return
        hit = Hit(
            tenant_id=tenant_id,
            day=clock.utc_now().date().isoformat(),
            gateway_id=gateway_id,
            cid=str(cid),
            file_name=model.clean_text(name, MAX_FILE_NAME),
            status=status,
            user_agent=model.clean_text(headers.get("user-agent", ""), MAX_USER_AGENT),
            referer=model.referer_origin(headers.get("referer", "")) or UNKNOWN,
            network=None if name else network,
        )
        self._add(hit, HitCount(1, sent))

    def _add(self, hit: Hit, count: HitCount) -> None:
        tenant_is_full = self._pending_of_tenant[hit.tenant_id] >= MAX_PENDING_OF_TENANT
        if hit not in self._pending and (tenant_is_full or len(self._pending) >= MAX_PENDING):
            hit = hit.with_gateway_only()
        if hit not in self._pending:
            self._pending_of_tenant[hit.tenant_id] += 1
            self._pending[hit] = HitCount()
        self._pending[hit].add(count)

    async def _write(self) -> None:
        if not self._pending:
            return
        batch, self._pending, self._pending_of_tenant = self._pending, {}, Counter()
        try:
            counts = await self._db.read_long(lambda connection: _add_file_names(connection, batch))
            await self._db.write(lambda connection: _store_counts(connection, counts))
        except Exception:
            for hit, count in batch.items():
                self._add(hit, count)
            raise


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


def _add_file_names(connection: Connection, batch: Mapping[Hit, HitCount]) -> Mapping[Hit, HitCount]:
    """Use the names of the tenants' own files for URLs that had none."""
    unnamed: dict[tuple[str, ContentNetwork], set[str]] = defaultdict(set)
    for hit in batch:
        if hit.network is not None:
            unnamed[hit.tenant_id, hit.network].add(hit.cid)
    names = {key: files.file_names(connection, *key, cids) for key, cids in unnamed.items()}
    counts: dict[Hit, HitCount] = {}
    for hit, count in batch.items():
        if hit.network is None:
            named = hit
        else:
            name = names[hit.tenant_id, hit.network].get(hit.cid, "")
            named = hit._replace(file_name=model.clean_text(name, MAX_FILE_NAME), network=None)
        counts.setdefault(named, HitCount()).add(count)
    return counts


def _store_counts(connection: Connection, counts: Mapping[Hit, HitCount]) -> None:
    rows: dict[Hit, HitCount] = {}
    for (tenant_id, day), hits in groupby(sorted(counts), key=lambda hit: (hit.tenant_id, hit.day)):
        of_day: Mapping[Hit, HitCount] = {hit: counts[hit] for hit in hits}
        if store.count_rows(connection, tenant_id, day) + len(of_day) > model.DETAILED_ROWS:
            of_day = model.limit_rows(of_day, store.list_digests(connection, tenant_id, day))
        rows |= of_day
    store.add_counts(connection, rows)
