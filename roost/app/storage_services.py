"""Services of the storage API: files with CIDs, and all that serves, pins and announces them."""

from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from prometheus_client import CollectorRegistry, Gauge

from roost.app.core_services import CoreServices
from roost.app.drivers import StorageDrivers, create_network
from roost.core import log
from roost.core.db import Database
from roost.domain_names.service import DomainService
from roost.drivers.blob.drafts import DraftStore
from roost.drivers.http_sender.guarded import GuardedHttpSender
from roost.drivers.network.contract import NetworkAnnouncer
from roost.http.storage_gateway.resolver import GatewayResolver
from roost.identity.caller import Plan
from roost.net.guarded_transport import check_url
from roost.storage.compat.service import LegacyPinService
from roost.storage.content.service import ContentService, MaintenanceTasks
from roost.storage.files.groups.service import GroupService
from roost.storage.files.service import FileService, describe_holders
from roost.storage.files.signatures.service import SignatureService
from roost.storage.files.signed_urls.service import SignedUrlService
from roost.storage.files.tus.service import TusUploadService
from roost.storage.files.uploads.service import UploadService
from roost.storage.gateways.analytics.service import AnalyticsService, GatewayHitCounter
from roost.storage.gateways.service import GatewayDomainService, StorageGatewayService
from roost.storage.gateways.swaps.service import SwapService
from roost.storage.payments.instructions.model import PaymentAssets
from roost.storage.payments.instructions.service import PaymentInstructionService
from roost.storage.payments.service import PaymentService
from roost.storage.pins.announcements import Announcements
from roost.storage.pins.retrieve import PinRetrieval
from roost.storage.pins.service import PinService
from roost.storage.vectors.indexing import VectorIndexing
from roost.storage.vectors.service import VectorGrantService, VectorService
from roost.storage.vectors.vector_index import open_vector_index
from roost.storage.webhooks.sender import WebhookSender
from roost.storage.webhooks.service import WebhookService
from roost.web.service_registry import ServiceGroup

_log = log.get_logger("storage")


@dataclass(frozen=True)
class FileServices(ServiceGroup):
    files: FileService
    groups: GroupService
    uploads: UploadService
    tus_uploads: TusUploadService
    signatures: SignatureService
    signed_urls: SignedUrlService


@dataclass(frozen=True)
class GatewayServices(ServiceGroup):
    """Gateways, what they serve, and who pays for it."""

    gateways: StorageGatewayService
    domains: GatewayDomainService
    hit_counter: GatewayHitCounter
    analytics: AnalyticsService
    swaps: SwapService
    resolver: GatewayResolver
    payment_instructions: PaymentInstructionService
    payments: PaymentService


@dataclass(frozen=True)
class PinServices(ServiceGroup):
    """Pins by CID; `announcements` only where the public network announces content."""

    pins: PinService
    legacy_pins: LegacyPinService
    announcements: Announcements | None


@dataclass(frozen=True)
class StorageServices(ServiceGroup):
    content: ContentService
    files: FileServices
    gateways: GatewayServices
    pins: PinServices
    webhooks: WebhookService
    webhook_sender: WebhookSender
    vectors: VectorService
    vector_grants: VectorGrantService


def build_storage_services(core: CoreServices, drivers: StorageDrivers, domains: DomainService) -> StorageServices:
    db, operations, settings, transports = core.db, core.operations, core.settings, core.network.transports
    content = ContentService(db, drivers.blobs, describe_holders)
    files = FileService(db, {Plan.FREE: settings.storage_free, Plan.PAID: settings.storage_paid})
    own = _build_files(core, drivers, content, files)
    check = partial(check_url, core.network.dialer.policy)
    http_sender = GuardedHttpSender(lambda tenant_id: transports(f"tenant/{tenant_id}"), check)  # it pays for look-ups
    webhooks = WebhookService(db, core.sealer, http_sender)
    files.add_listener(webhooks.add_file_event)
    index, model = open_vector_index(db), drivers.embedding_model
    VectorIndexing(db, operations, content.reader, drivers.text_extractor, model, index)
    return StorageServices(
        content=content,
        files=own,
        gateways=_build_gateways(core, drivers, content, own, domains),
        pins=_build_pins(core, content, own),
        webhooks=webhooks,
        webhook_sender=WebhookSender(db, operations, core.sealer, http_sender),
        vectors=VectorService(db, operations, files, model, index),
        vector_grants=VectorGrantService(db, core.identity.gateway_tokens),
    )


def _build_files(
    core: CoreServices, drivers: StorageDrivers, content: ContentService, files: FileService
) -> FileServices:
    db, settings, uploads_url = core.db, core.settings, core.addresses.uploads_url
    uploads = UploadService(db, content, files, {Plan.FREE: settings.upload_free, Plan.PAID: settings.upload_paid})
    drafts = DraftStore(settings.data / "uploads", drivers.blobs)
    return FileServices(
        files=files,
        groups=GroupService(db, files),
        uploads=uploads,
        tus_uploads=TusUploadService(db, drafts, content, uploads, uploads_url, core.host.id),
        signatures=SignatureService(db),
        signed_urls=SignedUrlService(db, core.sealer, uploads_url),
    )


def _build_gateways(
    core: CoreServices, drivers: StorageDrivers, content: ContentService, own: FileServices, domains: DomainService
) -> GatewayServices:
    db, addresses, days = core.db, core.addresses, core.settings.analytics_days
    gateways, hit_counter = StorageGatewayService(db, addresses.gateway_origin), GatewayHitCounter(db, days)
    swaps, assets = SwapService(db, gateways), PaymentAssets(core.settings.payment_assets)
    return GatewayServices(
        gateways=gateways,
        domains=GatewayDomainService(gateways, content.reader, domains, addresses.origin),
        hit_counter=hit_counter,
        analytics=AnalyticsService(db, gateways, hit_counter, days),
        swaps=swaps,
        resolver=GatewayResolver(gateways, swaps, own.signatures, own.signed_urls, content.reader),
        payment_instructions=PaymentInstructionService(db, own.files, assets),
        payments=PaymentService(db, assets, drivers.facilitator),
    )


def _build_pins(core: CoreServices, content: ContentService, own: FileServices) -> PinServices:
    db, settings, files, uploads = core.db, core.settings, own.files, own.uploads
    public = create_network(settings, core.network.dialer, core.network.transports)
    largest = max(settings.upload_free, settings.upload_paid)
    PinRetrieval(db, core.operations, content, files, public, uploads.size_limit, largest)
    announces = isinstance(public, NetworkAnnouncer)
    return PinServices(
        pins=PinService(db, files, public),
        legacy_pins=LegacyPinService(db, files, uploads),
        announcements=Announcements(db, core.operations, files, content.reader, public) if announces else None,
    )


async def start_storage_services(
    db: Database, storage: StorageServices, drivers: StorageDrivers, stack: AsyncExitStack
) -> MaintenanceTasks:
    """Check the blob store, and start all but the returned tasks; `stack` stops them. Raises BlobStoreFailed."""

    async def expire() -> int:
        files, gateways = storage.files, storage.gateways
        services = (files.files, files.tus_uploads, gateways.analytics, storage.webhook_sender)
        return sum([await service.expire() for service in services])

    stack.push_async_callback(drivers.blobs.close)
    if drivers.facilitator is not None:
        stack.push_async_callback(drivers.facilitator.close)
    if remark := await drivers.blobs.probe():
        _log.warning("blob_store.probed", remark=remark)
    maintenance = MaintenanceTasks(db, storage.content, expire)
    stack.push_async_callback(maintenance.stop)
    stack.push_async_callback(storage.gateways.hit_counter.stop)
    storage.gateways.hit_counter.start()
    if storage.pins.announcements is not None:
        await storage.pins.announcements.start()
    return maintenance


def measure_content(content: ContentService, metrics: CollectorRegistry) -> None:
    damaged = Gauge("roost_damaged_packs", "Stored packs that are known to be damaged", registry=metrics)
    damaged.set_function(lambda: content.scrubber.damaged_packs)
    due = Gauge("roost_due_packs", "Stored packs that the current scrub has yet to check", registry=metrics)
    due.set_function(lambda: content.scrubber.due_packs)
    stored = Gauge("roost_stored_bytes", "Bytes of the stored packs of all tenants", registry=metrics)
    stored.set_function(lambda: content.totals.size)
    unheld = Gauge("roost_unheld_bytes", "Bytes of stored packs that no file holds", registry=metrics)
    unheld.set_function(lambda: content.totals.unheld)
