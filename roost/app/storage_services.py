"""Services of the storage API: files with CIDs, and all that serves, pins and announces them."""

from contextlib import AsyncExitStack
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Gauge

from roost.app.core_services import CoreServices
from roost.app.drivers import Drivers, create_http_sender, create_network
from roost.core import log
from roost.domain_names.service import DomainService
from roost.drivers.blob.contract import BlobStore
from roost.drivers.blob.drafts import DraftStore
from roost.drivers.facilitator.contract import Facilitator
from roost.drivers.network.contract import NetworkAnnouncer
from roost.http.storage_gateway.resolver import GatewayResolver
from roost.identity.caller import Plan
from roost.storage.compat.service import LegacyPinService
from roost.storage.content.maintenance import MaintenanceTasks
from roost.storage.content.service import ContentService
from roost.storage.files import damage
from roost.storage.files.groups.service import GroupService
from roost.storage.files.service import FileService
from roost.storage.files.signatures.service import SignatureService
from roost.storage.files.signed_urls.service import SignedUrlService
from roost.storage.files.tus.service import TusUploadService
from roost.storage.files.uploads.service import UploadService
from roost.storage.gateways.analytics.hit_counter import GatewayHitCounter
from roost.storage.gateways.analytics.service import AnalyticsService
from roost.storage.gateways.custom_domains import GatewayDomainService
from roost.storage.gateways.service import StorageGatewayService
from roost.storage.gateways.swaps.service import SwapService
from roost.storage.payments.instructions.assets import PaymentAssets
from roost.storage.payments.instructions.service import PaymentInstructionService
from roost.storage.payments.service import PaymentService
from roost.storage.pins.announcements import Announcements
from roost.storage.pins.retrieve import PinRetrieval
from roost.storage.pins.service import PinService
from roost.storage.vectors.grants import VectorGrantService
from roost.storage.vectors.index_selection import open_vector_index
from roost.storage.vectors.indexing import VectorIndexing
from roost.storage.vectors.service import VectorService
from roost.storage.webhooks.sender import WebhookSender
from roost.storage.webhooks.service import WebhookService

_log = log.get_logger("storage")


@dataclass(frozen=True)
class StorageServices:
    blobs: BlobStore
    content: ContentService
    files: FileService
    groups: GroupService
    uploads: UploadService
    tus_uploads: TusUploadService
    pins: PinService
    legacy_pins: LegacyPinService
    announcements: Announcements | None
    webhooks: WebhookService
    webhook_sender: WebhookSender
    gateways: StorageGatewayService
    gateway_domains: GatewayDomainService
    hit_counter: GatewayHitCounter
    analytics: AnalyticsService
    signatures: SignatureService
    swaps: SwapService
    signed_urls: SignedUrlService
    payment_instructions: PaymentInstructionService
    payments: PaymentService
    facilitator: Facilitator | None
    resolver: GatewayResolver
    vectors: VectorService
    vector_grants: VectorGrantService


def build_storage_services(core: CoreServices, drivers: Drivers, domains: DomainService) -> StorageServices:
    settings, db, addresses, blobs = core.settings, core.db, core.addresses, drivers.blobs
    content = ContentService(db, blobs)
    content.scrubber.describe_holders = damage.describe_holders
    _measure_content(content, core.metrics)
    files = FileService(db, {Plan.FREE: settings.storage_free, Plan.PAID: settings.storage_paid})
    uploads = UploadService(db, content, files, {Plan.FREE: settings.upload_free, Plan.PAID: settings.upload_paid})
    sender = create_http_sender(core.dialer.policy, core.transports)
    webhooks = WebhookService(db, core.sealer, sender)
    files.add_listener(webhooks.add_file_event)
    gateways = StorageGatewayService(db, addresses.gateway_origin)
    hit_counter = GatewayHitCounter(db, settings.analytics_days)
    public = create_network(settings, core.dialer, core.transports)
    largest = max(settings.upload_free, settings.upload_paid)
    PinRetrieval(db, core.operations, content, files, public, uploads.size_limit, largest)
    signatures, swaps = SignatureService(db), SwapService(db, gateways)
    assets = PaymentAssets(settings.payment_assets)
    signed_urls = SignedUrlService(db, core.sealer, addresses.uploads_url)
    return StorageServices(
        blobs=blobs,
        content=content,
        files=files,
        groups=GroupService(db, files),
        uploads=uploads,
        tus_uploads=TusUploadService(
            db, DraftStore(settings.data / "uploads", blobs), content, uploads, addresses.uploads_url
        ),
        pins=PinService(db, files, public),
        legacy_pins=LegacyPinService(db, files, uploads),
        announcements=(
            Announcements(db, core.operations, files, content.reader, public)
            if isinstance(public, NetworkAnnouncer)
            else None
        ),
        webhooks=webhooks,
        webhook_sender=WebhookSender(db, core.operations, core.sealer, sender),
        gateways=gateways,
        gateway_domains=GatewayDomainService(gateways, content.reader, domains, addresses.origin),
        hit_counter=hit_counter,
        analytics=AnalyticsService(db, gateways, hit_counter, settings.analytics_days),
        signatures=signatures,
        swaps=swaps,
        signed_urls=signed_urls,
        payment_instructions=PaymentInstructionService(db, files, assets),
        payments=PaymentService(db, assets, drivers.facilitator),
        facilitator=drivers.facilitator,
        resolver=GatewayResolver(gateways, swaps, signatures, signed_urls, content.reader),
        vectors=_build_vectors(core, drivers, content, files),
        vector_grants=VectorGrantService(db, core.gateway_tokens),
    )


def _build_vectors(core: CoreServices, drivers: Drivers, content: ContentService, files: FileService) -> VectorService:
    index, model = open_vector_index(core.db), drivers.embedding_model
    VectorIndexing(core.db, core.operations, content.reader, drivers.text_extractor, model, index)
    return VectorService(core.db, core.operations, files, model, index)


async def start_storage_services(storage: StorageServices, stack: AsyncExitStack) -> None:
    """Check the blob store and start the background tasks; `stack` stops them. Raises BlobStoreFailed."""

    async def expire() -> int:
        services = (storage.files, storage.tus_uploads, storage.analytics, storage.webhook_sender)
        return sum([await service.expire() for service in services])

    stack.push_async_callback(storage.blobs.close)
    if storage.facilitator is not None:
        stack.push_async_callback(storage.facilitator.close)
    if remark := await storage.blobs.probe():
        _log.warning("blob_store.probed", remark=remark)
    maintenance = MaintenanceTasks(storage.content, expire)
    stack.push_async_callback(maintenance.stop)
    maintenance.start()
    stack.push_async_callback(storage.hit_counter.stop)
    storage.hit_counter.start()
    if storage.announcements is not None:
        await storage.announcements.start()


def _measure_content(content: ContentService, metrics: CollectorRegistry) -> None:
    damaged = Gauge("roost_damaged_packs", "Stored packs that are known to be damaged", registry=metrics)
    damaged.set_function(lambda: content.scrubber.damaged_packs)
    due = Gauge("roost_due_packs", "Stored packs that the current scrub has yet to check", registry=metrics)
    due.set_function(lambda: content.scrubber.due_packs)
    stored = Gauge("roost_stored_bytes", "Bytes of the stored packs of all tenants", registry=metrics)
    stored.set_function(lambda: content.totals.size)
    unheld = Gauge("roost_unheld_bytes", "Bytes of stored packs that no file holds", registry=metrics)
    unheld.set_function(lambda: content.totals.unheld)
