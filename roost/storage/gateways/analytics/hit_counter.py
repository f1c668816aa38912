"""Count gateway responses in memory and add them to the database every two seconds.

The counts of several servers add up. Memory is bounded, for each tenant and for all.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import groupby

from sqlalchemy import Connection

from roost.core import clock
from roost.core.db import Database
from roost.core.periodic import PeriodicFlusher
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.cid import Cid
from roost.storage.files import service as files
from roost.storage.gateways.analytics import model, store
from roost.storage.gateways.analytics.model import MAX_FILE_NAME, MAX_USER_AGENT, UNKNOWN, Hit, HitCount

MAX_PENDING, MAX_PENDING_OF_TENANT = 10_000, 2_000
"""Different hits in memory, of all tenants and of one."""
_INTERVAL_SECONDS = 2.0


class GatewayHitCounter(PeriodicFlusher):
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
