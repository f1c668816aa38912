"""Services of the storage API, connected."""

from prometheus_client import Gauge

from roost.app.core_services import CoreServices
from roost.app.drivers import create_http_sender, create_network
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
    def __init__(self, core: CoreServices, blobs: BlobStore) -> None:
        self._blobs = blobs
        self.content = ContentService(core.db, blobs)
        capacities = {Plan.FREE: core.settings.storage_free, Plan.PAID: core.settings.storage_paid}
        self.files = FileService(core.db, capacities)
        self.groups = GroupService(core.db, self.files)
        self.content.scrubber.describe_holders = damage.describe
        self._maintenance = MaintenanceTasks(self.content, self._expire)
        damaged = Gauge("roost_damaged_packs", "Stored packs that are known to be damaged", registry=core.registry)
        damaged.set_function(lambda: self.content.scrubber.damaged_packs)
        self._register_metrics(core)
        limits = {Plan.FREE: core.settings.upload_free, Plan.PAID: core.settings.upload_paid}
        self.uploads = UploadService(core.db, self.content, self.files, limits)
        drafts = DraftStore(core.settings.data / "uploads", blobs)
        self.transfers = TusUploadService(core.db, drafts, self.content, self.uploads, core.addresses.uploads_url)
        core.services.add(self.transfers)
        self._add_pins(core)
        self._add_webhooks(core)
        self.gateways = StorageGatewayService(core.db, core.addresses.gateway_origin)
        days = core.settings.analytics_days
        self.counter = GatewayHitCounter(core.db, days)
        self._analytics = AnalyticsService(core.db, self.gateways, self.counter, days)
        core.services.add(self._analytics)
        self.signatures = SignatureService(core.db)
        self.swaps = SwapService(core.db, self.gateways)
        for service in (self.signatures, self.swaps):
            core.services.add(service)
        self.links = SignedUrlService(core.db, core.sealer, core.addresses.uploads_url)
        self.serving = GatewayResolver(self.gateways, self.swaps, self.signatures, self.links, self.content.reader)
        core.services.add(LegacyPinService(core.db, self.files, self.uploads))
        core.services.add(self.links)
        core.services.add(self.gateways)
        for service in (self.content, self.groups, self.files, self.uploads):
            core.services.add(service)

    def _register_metrics(self, core: CoreServices) -> None:
        stored = Gauge("roost_stored_bytes", "Bytes of stored packs of all tenants", registry=core.registry)
        stored.set_function(lambda: self.content.totals.size)
        unheld = Gauge("roost_unheld_bytes", "Bytes of stored packs that no file holds", registry=core.registry)
        unheld.set_function(lambda: self.content.totals.unheld)

    def _add_pins(self, core: CoreServices) -> None:
        public_network = create_network(core.settings, core.dialer, core.transports)
        max_bytes = max(core.settings.upload_free, core.settings.upload_paid)
        PinRetrieval(core.db, core.queue, self.content, self.files, public_network, self.uploads.limit, max_bytes)
        core.services.add(PinService(core.db, self.files, public_network))
        self._announcements: Announcements | None = None
        if isinstance(public_network, NetworkAnnouncer):
            self._announcements = Announcements(core.db, core.queue, self.files, self.content.reader, public_network)

    def _add_webhooks(self, core: CoreServices) -> None:
        sender = create_http_sender(core.dialer.policy, core.transports)
        self.webhooks = WebhookService(core.db, core.sealer, sender)
        self.files.watch(self.webhooks.notice)
        self.sending = WebhookSender(core.db, core.queue, core.sealer, sender)
        core.services.add(self.webhooks)
        core.services.add(self.sending)

    async def start(self) -> None:
        """Start the background tasks. Raises BlobStoreFailed if nothing can be stored."""
        if warning := await self._blobs.probe():
            _log.warning("storage.warning_reported", reason=warning)
        self._maintenance.start()
        self.counter.start()
        if self._announcements is not None:
            await self._announcements.start()

    async def check(self) -> None:
        """Raise BlobStoreFailed if the stored content cannot be reached."""
        await self._blobs.check()

    async def _expire(self) -> int:
        expired = await self.files.expire() + await self.transfers.expire()
        return expired + await self._analytics.expire() + await self.sending.expire()

    async def stop(self) -> None:
        await self._maintenance.stop()
        await self.counter.stop()
        await self._blobs.close()
