"""The storage wing, connected: files with CIDs, and what stands around them."""

from prometheus_client import Gauge

from roost.agents.egress.dialer import Dialer
from roost.app.ground import Ground
from roost.app.outside import courier, network
from roost.core import log
from roost.drivers.blob.contract import BlobStore
from roost.drivers.blob.drafts import Drafts
from roost.drivers.network.contract import Announcer
from roost.identity.caller import Plan
from roost.storage.analytics.counter import Counter
from roost.storage.analytics.service import Analytics
from roost.storage.content.keeper import Keeper
from roost.storage.content.service import Content
from roost.storage.files import damage
from roost.storage.files.service import Files
from roost.storage.gateways.custom_domains import CustomDomains
from roost.storage.gateways.service import Gateways
from roost.storage.groups.service import Groups
from roost.storage.legacy.service import Legacy
from roost.storage.links.service import Links
from roost.storage.offers.service import Offers
from roost.storage.pins.model import RETRIEVE
from roost.storage.pins.retrieve import RETRIES, Retrieval
from roost.storage.pins.service import Pins
from roost.storage.serve.service import Serving
from roost.storage.signatures.service import Signatures
from roost.storage.swaps.service import Swaps
from roost.storage.tus.service import Transfers
from roost.storage.uploads.service import Uploads
from roost.storage.webhooks.sending import Sending
from roost.storage.webhooks.service import Webhooks

_log = log.get("storage")


class StorageWing:
    def __init__(self, ground: Ground, blobs: BlobStore) -> None:
        self._blobs = blobs
        self.content = Content(ground.db, blobs)
        self.groups = Groups(ground.db)
        capacities = {Plan.FREE: ground.settings.storage_free, Plan.PAID: ground.settings.storage_paid}
        self.files = Files(ground.db, capacities)
        self.content.scrub.describe = damage.describe
        self._keeper = Keeper(self.content, self._expire)
        damaged = Gauge("roost_damaged_packs", "Stored packs that are known to be damaged", registry=ground.registry)
        damaged.set_function(lambda: self.content.scrub.damaged)
        self._measure(ground)
        limits = {Plan.FREE: ground.settings.upload_free, Plan.PAID: ground.settings.upload_paid}
        self.uploads = Uploads(ground.db, self.content, self.files, limits)
        drafts = Drafts(ground.settings.data / "uploads", blobs)
        self.transfers = Transfers(ground.db, drafts, self.content, self.uploads, ground.addresses.uploads_url)
        ground.rooms.add(self.transfers)
        self._pin(ground)
        self._tell(ground)
        self.gateways = Gateways(ground.db, ground.addresses.gateway_origin)
        days = ground.settings.analytics_days
        self.counter = Counter(ground.db, days)
        self._analytics = Analytics(ground.db, self.gateways, self.counter, days)
        ground.rooms.add(self._analytics)
        self.signatures = Signatures(ground.db)
        self.swaps = Swaps(ground.db, self.gateways)
        for room in (self.signatures, self.swaps, CustomDomains(ground.db)):
            ground.rooms.add(room)
        self.links = Links(ground.db, ground.seal, ground.addresses.uploads_url)
        self.serving = Serving(self.gateways, self.swaps, self.signatures, self.links, self.content.reader)
        ground.rooms.add(Legacy(ground.db, self.files, self.uploads))
        ground.rooms.add(self.links)
        ground.rooms.add(self.gateways)
        for room in (self.content, self.groups, self.files, self.uploads):
            ground.rooms.add(room)

    def _measure(self, ground: Ground) -> None:
        stored = Gauge("roost_stored_bytes", "Bytes of stored packs, whoever's they are", registry=ground.registry)
        stored.set_function(lambda: self.content.kept.size)
        unheld = Gauge("roost_unheld_bytes", "Those of them that no file holds any more", registry=ground.registry)
        unheld.set_function(lambda: self.content.kept.unheld)

    def _pin(self, ground: Ground) -> None:
        outside = network(ground.settings, Dialer(ground.policy, ground.resolver), ground.policy.admits_address)
        most = max(ground.settings.upload_free, ground.settings.upload_paid)
        retrieval = Retrieval(ground.db, self.content, self.files, outside, self.uploads.limit, most)
        ground.queue.handle(RETRIEVE, retrieval.handle, retries=RETRIES)
        ground.rooms.add(Pins(ground.db, ground.queue, self.files, outside))
        self._offers: Offers | None = None
        if isinstance(outside, Announcer):
            self._offers = Offers(ground.db, ground.queue, self.files, self.content.reader, outside)

    def _tell(self, ground: Ground) -> None:
        post = courier(ground.settings, ground.policy, Dialer(ground.policy, ground.resolver))
        self.webhooks = Webhooks(ground.db, ground.seal, post)
        self.files.watch(self.webhooks.notice)
        self.sending = Sending(ground.db, ground.seal, post)
        ground.rooms.add(self.webhooks)
        ground.rooms.add(self.sending)

    async def start(self) -> None:
        """Raises BlobFailed when nothing can be kept."""
        if remark := await self._blobs.probe():
            _log.warning(remark)
        self._keeper.start()
        await self.sending.start()
        self.counter.start()
        if self._offers is not None:
            await self._offers.start()

    async def check(self) -> None:
        """Raises BlobFailed when what is kept cannot be reached."""
        await self._blobs.check()

    async def _expire(self) -> int:
        return await self.files.expire() + await self.transfers.expire() + await self._analytics.expire()

    async def stop(self) -> None:
        await self._keeper.stop()
        await self.sending.stop()
        await self.counter.stop()
        await self._blobs.close()
