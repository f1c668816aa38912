"""The storage wing, connected: files with CIDs, and what stands around them."""

from prometheus_client import Gauge

from roost.app.core_services import CoreServices
from roost.app.drivers import http_sender, network
from roost.core import log
from roost.drivers.blob.contract import BlobStore
from roost.drivers.blob.drafts import DraftStore
from roost.drivers.network.contract import NetworkAnnouncer
from roost.hosts.storage_gateway.resolver import GatewayResolver
from roost.identity.caller import Plan
from roost.storage.analytics.hit_counter import GatewayHitCounter
from roost.storage.analytics.service import AnalyticsService
from roost.storage.compat.service import LegacyPinService
from roost.storage.content.maintenance import MaintenanceTasks
from roost.storage.content.service import ContentService
from roost.storage.files import damage
from roost.storage.files.service import FileService
from roost.storage.gateways.service import StorageGatewayService
from roost.storage.groups.service import GroupService
from roost.storage.pins.announcements import Announcements
from roost.storage.pins.retrieve import PinRetrieval
from roost.storage.pins.service import PinService
from roost.storage.signatures.service import SignatureService
from roost.storage.signed_urls.service import SignedUrlService
from roost.storage.swaps.service import SwapService
from roost.storage.tus.service import TusUploadService
from roost.storage.uploads.service import UploadService
from roost.storage.webhooks.sender import WebhookSender
from roost.storage.webhooks.service import WebhookService

_log = log.get_logger("storage")


class StorageServices:
    def __init__(self, ground: CoreServices, blobs: BlobStore) -> None:
        self._blobs = blobs
        self.content = ContentService(ground.db, blobs)
        capacities = {Plan.FREE: ground.settings.storage_free, Plan.PAID: ground.settings.storage_paid}
        self.files = FileService(ground.db, capacities)
        self.groups = GroupService(ground.db, self.files)
        self.content.scrubber.describe_holders = damage.describe
        self._keeper = MaintenanceTasks(self.content, self._expire)
        damaged = Gauge("roost_damaged_packs", "Stored packs that are known to be damaged", registry=ground.registry)
        damaged.set_function(lambda: self.content.scrubber.damaged_packs)
        self._measure(ground)
        limits = {Plan.FREE: ground.settings.upload_free, Plan.PAID: ground.settings.upload_paid}
        self.uploads = UploadService(ground.db, self.content, self.files, limits)
        drafts = DraftStore(ground.settings.data / "uploads", blobs)
        self.transfers = TusUploadService(ground.db, drafts, self.content, self.uploads, ground.addresses.uploads_url)
        ground.rooms.add(self.transfers)
        self._pin(ground)
        self._tell(ground)
        self.gateways = StorageGatewayService(ground.db, ground.addresses.gateway_origin)
        days = ground.settings.analytics_days
        self.counter = GatewayHitCounter(ground.db, days)
        self._analytics = AnalyticsService(ground.db, self.gateways, self.counter, days)
        ground.rooms.add(self._analytics)
        self.signatures = SignatureService(ground.db)
        self.swaps = SwapService(ground.db, self.gateways)
        for room in (self.signatures, self.swaps):
            ground.rooms.add(room)
        self.links = SignedUrlService(ground.db, ground.seal, ground.addresses.uploads_url)
        self.serving = GatewayResolver(self.gateways, self.swaps, self.signatures, self.links, self.content.reader)
        ground.rooms.add(LegacyPinService(ground.db, self.files, self.uploads))
        ground.rooms.add(self.links)
        ground.rooms.add(self.gateways)
        for room in (self.content, self.groups, self.files, self.uploads):
            ground.rooms.add(room)

    def _measure(self, ground: CoreServices) -> None:
        stored = Gauge("roost_stored_bytes", "Bytes of stored packs, whoever's they are", registry=ground.registry)
        stored.set_function(lambda: self.content.totals.size)
        unheld = Gauge("roost_unheld_bytes", "Those of them that no file holds any more", registry=ground.registry)
        unheld.set_function(lambda: self.content.totals.unheld)

    def _pin(self, ground: CoreServices) -> None:
        outside = network(ground.settings, ground.dialer, ground.transports)
        most = max(ground.settings.upload_free, ground.settings.upload_paid)
        PinRetrieval(ground.db, ground.queue, self.content, self.files, outside, self.uploads.limit, most)
        ground.rooms.add(PinService(ground.db, self.files, outside))
        self._announcements: Announcements | None = None
        if isinstance(outside, NetworkAnnouncer):
            self._announcements = Announcements(ground.db, ground.queue, self.files, self.content.reader, outside)

    def _tell(self, ground: CoreServices) -> None:
        post = http_sender(ground.dialer.policy, ground.transports)
        self.webhooks = WebhookService(ground.db, ground.seal, post)
        self.files.watch(self.webhooks.notice)
        self.sending = WebhookSender(ground.db, ground.queue, ground.seal, post)
        ground.rooms.add(self.webhooks)
        ground.rooms.add(self.sending)

    async def start(self) -> None:
        """Raises BlobFailed when nothing can be kept."""
        if remark := await self._blobs.probe():
            _log.warning(remark)
        self._keeper.start()
        self.counter.start()
        if self._announcements is not None:
            await self._announcements.start()

    async def check(self) -> None:
        """Raises BlobFailed when what is kept cannot be reached."""
        await self._blobs.check()

    async def _expire(self) -> int:
        ended = await self.files.expire() + await self.transfers.expire()
        return ended + await self._analytics.expire() + await self.sending.expire()

    async def stop(self) -> None:
        await self._keeper.stop()
        await self.counter.stop()
        await self._blobs.close()
