"""Counts answers in memory; they are written down every two seconds.

Several servers of one database add up. There are only so many things that are told apart between two writes, of one
tenant and of all.
"""

from collections.abc import Iterable, Mapping
from datetime import date
from itertools import groupby

from sqlalchemy import Connection

from roost.core import clock
from roost.core.db import Database
from roost.core.periodic_flusher import PeriodicFlusher
from roost.storage.analytics import model, store
from roost.storage.analytics.model import LONGEST_AGENT, LONGEST_NAME, Hit, HitAggregate, HitCount
from roost.storage.content.model import ContentNetwork
from roost.storage.files import service as files
from roost.storage.unixfs.cid import Cid

MOST, MOST_OF_A_TENANT = 10_000, 2_000
"""Different visits in memory, and those of one tenant."""
_INTERVAL = 2.0

Names = Mapping[tuple[str, ContentNetwork, Cid], str]
"""How tenants call their files, by the version 1 of their CIDs."""


class GatewayHitCounter(PeriodicFlusher):
    def __init__(self, db: Database, days: int) -> None:
        """days: for how many what is counted is kept; with none, nothing is counted."""
        super().__init__("gateway hits", _INTERVAL)
        self._db = db
        self._days = days
        self._pending: dict[Hit, HitCount] = {}
        self._of_tenant: dict[str, int] = {}

    def served(
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
        """Count an answer of which `sent` bytes went out."""
        if not self._days:
            return
        agent, referer = headers.get("user-agent", ""), headers.get("referer")
        visit = Hit(
            day=clock.utc_now().toordinal(),
            tenant_id=tenant_id,
            gateway_id=gateway_id,
            network=network,
            cid=cid,
            name=name[:LONGEST_NAME],
            status=status,
            user_agent=agent[:LONGEST_AGENT],
            referer=model.origin(referer) if referer else "",
        )
        self._add(visit, HitCount(1, sent))

    def _add(self, visit: Hit, tally: HitCount) -> None:
        known = self._pending.get(visit)
        if known is not None:
            known.add(tally)
            return
        number = self._of_tenant.get(visit.tenant_id, 0)
        if visit.cid is not None and (number >= MOST_OF_A_TENANT or len(self._pending) >= MOST):
            self._add(visit.plainer(), tally)
            return
        self._of_tenant[visit.tenant_id] = number + 1
        self._pending[visit] = tally

    async def _write(self) -> None:
        if not self._pending:
            return
        batch, self._pending, self._of_tenant = self._pending, {}, {}
        try:
            names = await self._db.read_long(lambda connection: _names(connection, batch))
            await self._db.write(lambda connection: _keep(connection, batch, names))
        except Exception:
            for visit, tally in batch.items():
                self._add(visit, tally)
            raise


def _keep(connection: Connection, batch: Mapping[Hit, HitCount], names: Names) -> None:
    lines: dict[HitAggregate, HitCount] = {}
    for visit, tally in batch.items():
        name = None if visit.cid is None else names.get((visit.tenant_id, visit.network, visit.cid.v1()))
        line = model.line(visit, name)
        lines.setdefault(line, HitCount()).add(tally)
    kept: dict[HitAggregate, HitCount] = {}
    for (tenant_id, day), group in groupby(sorted(lines, key=_place), key=_place):
        of_day = {line: lines[line] for line in group}
        kept |= _within_bounds(connection, tenant_id, day, of_day)
    store.add(connection, kept)


def _within_bounds(
    connection: Connection, tenant_id: str, day: date, lines: Mapping[HitAggregate, HitCount]
) -> Mapping[HitAggregate, HitCount]:
    if store.count(connection, tenant_id, day) + len(lines) <= model.DETAILED:
        return lines
    return model.fitted(lines, store.digests(connection, tenant_id, day))


def _place(line: HitAggregate) -> tuple[str, date]:
    return line.tenant_id, line.day


def _names(connection: Connection, batch: Iterable[Hit]) -> Names:
    """The names of the tenants' own files, where the address had none."""
    asked: dict[tuple[str, ContentNetwork], set[Cid]] = {}
    for visit in batch:
        if visit.cid is not None and not visit.name:
            asked.setdefault((visit.tenant_id, visit.network), set()).add(visit.cid)
    return {
        (tenant_id, network, cid): name
        for (tenant_id, network), cids in asked.items()
        for cid, name in files.file_names(connection, tenant_id, network, list(cids)).items()
    }
