"""Hot swaps of a tenant's files, which its gateways with the plugin apply; a replacement is not swapped again."""

from collections.abc import Sequence
from datetime import timedelta

from roost.core import clock, ids
from roost.core.db import Connection, Database
from roost.identity import tenants
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.cid import Cid
from roost.storage.files.service import get_file
from roost.storage.gateways.model import GatewayNotFound, Plugin, StorageGateway
from roost.storage.gateways.service import StorageGatewayService
from roost.storage.gateways.swaps import store
from roost.storage.gateways.swaps.model import HISTORY_LIMIT, HotSwap, InvalidSwap, SwapNotFound

_MICROSECOND = timedelta(microseconds=1)


class SwapService:
    def __init__(self, db: Database, gateways: StorageGatewayService) -> None:
        self._db = db
        self._gateways = gateways

    async def put(self, tenant_id: str, network: ContentNetwork, cid: str, mapped_cid: str) -> HotSwap:
        """Serve `mapped_cid` in place of `cid`; the tenant has both. Raises InvalidCid, InvalidSwap, FileNotFound."""
        requested, served = Cid.parse(cid), Cid.parse(mapped_cid)
        if requested.v1() == served.v1():
            raise InvalidSwap("a CID cannot be swapped for itself")

        def add(connection: Connection) -> HotSwap:
            tenants.lock_tenant(connection, tenant_id)
            for one in (requested, served):
                get_file(connection, tenant_id, network, one)
            return _add(connection, tenant_id, network, requested, str(served))

        return await self._db.write(add)

    async def history(self, tenant_id: str, network: ContentNetwork, cid: str, domain: str | None) -> Sequence[HotSwap]:
        """List swaps, newest first. domain: the name of one of the tenant's gateways.

        Raises InvalidCid, GatewayNotFound, SwapNotFound.
        """
        if domain is not None and (await self._gateways.get_by_domain(domain.partition(".")[0])).tenant_id != tenant_id:
            raise GatewayNotFound
        swaps = await self._history(tenant_id, network, Cid.parse(cid))
        if not swaps:
            raise SwapNotFound
        return swaps

    async def delete(self, tenant_id: str, network: ContentNetwork, cid: str) -> None:
        """Serve the CID itself again. Raises InvalidCid, SwapNotFound."""
        requested = Cid.parse(cid)

        def end(connection: Connection) -> None:
            tenants.lock_tenant(connection, tenant_id)
            newest = store.list_swaps(connection, tenant_id, network, str(requested.v1()), 1)
            if not newest or newest[0].mapped_cid is None:
                raise SwapNotFound
            _add(connection, tenant_id, network, requested, None)

        await self._db.write(end)

    async def find_served_cid(self, gateway: StorageGateway, network: ContentNetwork, cid: Cid) -> Cid:
        """Return the CID that the gateway serves in place of a requested CID."""
        if Plugin.HOT_SWAPS not in gateway.plugins:
            return cid
        newest = next(iter(await self._history(gateway.tenant_id, network, cid, 1)), None)
        return cid if newest is None or newest.mapped_cid is None else Cid.parse(newest.mapped_cid)

    async def _history(
        self, tenant_id: str, network: ContentNetwork, cid: Cid, limit: int = HISTORY_LIMIT
    ) -> Sequence[HotSwap]:
        text = str(cid.v1())
        return await self._db.read(lambda connection: store.list_swaps(connection, tenant_id, network, text, limit))


def _add(connection: Connection, tenant_id: str, network: ContentNetwork, cid: Cid, mapped_cid: str | None) -> HotSwap:
    """Add a swap to the history; a full history loses its oldest one."""
    text, now = str(cid.v1()), clock.utc_now()
    kept = store.list_swaps(connection, tenant_id, network, text, HISTORY_LIMIT)
    if kept:  # another server's clock may be ahead
        now = max(now, kept[0].created_at + _MICROSECOND)
    swap = HotSwap(ids.new_id(), tenant_id, network, text, mapped_cid, now)
    store.delete_swaps(connection, [one.id for one in kept[HISTORY_LIMIT - 1 :]])
    store.insert_swap(connection, swap)
    return swap
