"""A server: the services of both APIs, and the HTTP stack in front of them."""

import platform
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Histogram

from roost import __version__
from roost.agents.lifecycle.system.model import CheckResult, SoftwareVersions
from roost.agents.lifecycle.system.service import SystemService
from roost.app.agent_services import AgentServices, build_agent_services, start_agent_services
from roost.app.archive_services import ArchiveServices, build_archive_services
from roost.app.core_services import CoreServices, build_core_services
from roost.app.doctor import check_parts
from roost.app.domain_services import DomainServices, build_domain_services, start_domain_services
from roost.app.drivers import Drivers, create_image_renderer
from roost.app.free_space import check_free_space
from roost.app.hub_services import HubServices, build_hub_services, start_hub_services
from roost.app.storage_services import StorageServices, build_storage_services, start_storage_services
from roost.app.template_services import TemplateServices, build_launch_sources, build_template_services
from roost.app.tls_services import build_certificate_names, build_tls_proxy, proxy_socket
from roost.core.machine.daemon_thread import run_in_daemon_thread
from roost.core.machine.disk_space import read_disk_space
from roost.drivers.image.contract import ImageRenderer
from roost.drivers.tls_proxy.contract import TlsListeners, TlsProxy
from roost.http.dashboard.application import DashboardApp
from roost.http.dashboard.docs_application import BUILT_DOCS, DocsApp
from roost.http.dashboard.static_files import StaticFiles
from roost.http.edge.dependencies import ProxyDependencies
from roost.http.edge.protocol import EdgeHttpProtocol, edge_protocol
from roost.http.edge.response_cache import ResponseCache
from roost.http.server.application import create_application
from roost.http.server.health import Check, ServerHealth, pass_checks
from roost.http.server.server import HttpServer
from roost.http.stack.middleware import add_middleware
from roost.http.storage_gateway.application import StorageGatewayApp
from roost.http.storage_gateway.content_responses import ContentResponses
from roost.http.storage_gateway.disk_cache import DiskCache
from roost.http.storage_gateway.image_resizer import ImageResizer
from roost.http.storage_gateway.paid_content import PaidContent
from roost.http.tls.certificate_names import permission_router
from roost.settings import Settings
from roost.web import access_log
from roost.web.access_log import AccessRecord, Observe
from roost.web.service_registry import ServiceRegistry

_STOP_GRACE = 2.0
_SAVE_SECONDS = 10.0
_IMAGE_CACHE_BYTES = 1024**3


@dataclass(frozen=True)
class RoostServer:
    """A whole server. `start` it before it listens, `stop` it when it no longer listens."""

    core: CoreServices
    drivers: Drivers
    domains: DomainServices
    storage: StorageServices
    templates: TemplateServices
    agents: AgentServices
    archives: ArchiveServices
    hub: HubServices
    images: ImageRenderer
    edge: type[EdgeHttpProtocol]
    http: HttpServer
    tls_proxy: TlsProxy | None = None
    exit_stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def start(self) -> None:
        """Start the services in order; a failure stops the started ones.

        Raises RuntimeFailed when no container can be started, BlobStoreFailed when the blob store does not work,
        TlsProxyFailed when Caddy does not start.
        """
        self.drivers.runtime.take_priority()
        async with AsyncExitStack() as stack:
            stack.callback(self.core.close)
            for driver in (self.images, self.drivers.text_extractor, self.drivers.embedding_model):
                stack.push_async_callback(driver.close)
            stack.push_async_callback(self.core.events.stop)
            self.core.events.start()
            stack.push_async_callback(self.core.rotation_watch.stop)
            self.core.rotation_watch.start()
            await start_domain_services(self.domains, stack)
            await start_storage_services(self.storage, stack)
            if self.core.settings.catalogue:
                await self.templates.packaged.register()
            await start_agent_services(self.agents, stack)
            start_hub_services(self.hub, stack)
            stack.push_async_callback(self.core.operations.stop, grace=_STOP_GRACE)  # the next start finishes the rest
            await self.core.operations.start()
            stack.callback(self.edge.pool.close)
            if self.tls_proxy is not None:
                stack.push_async_callback(self.tls_proxy.stop)
                await self.tls_proxy.start()
            await self.exit_stack.enter_async_context(stack.pop_all())

    async def stop(self, *, keep_agents: bool = False) -> None:
        """Stop all services cleanly, and all agents unless `keep_agents`; the next start brings back or adopts them."""
        self.agents.lifecycle.reconciler.keeps_containers = keep_agents
        if not keep_agents:
            await self.agents.lifecycle.workspace.automatic.save_changes(_SAVE_SECONDS)
        await self.exit_stack.aclose()


def build_server(settings: Settings, drivers: Drivers, tls_listeners: TlsListeners | None = None) -> RoostServer:
    """Build the services and the HTTP stack over the database that the settings name.

    Nothing runs before `RoostServer.start`. Raises BadSettings, TlsProxyFailed.
    """
    tls_proxy = build_tls_proxy(settings, tls_listeners) if tls_listeners else None
    core, registry = build_core_services(settings), ServiceRegistry()
    domains = build_domain_services(core, drivers.dns, tls_proxy)
    storage = build_storage_services(core, drivers, domains.domains)
    images = create_image_renderer(settings)
    resizer = ImageResizer(
        storage.content.reader, images, DiskCache(settings.data / "cache/images", _IMAGE_CACHE_BYTES)
    )

    async def check_database() -> None:
        await agents.access.hosts.check_database()

    checks = {"database": check_database, **_readiness_checks(settings, drivers, storage)}
    registry.add(ServerHealth(checks, core.metrics, settings.metrics_token))
    registry.add(build_certificate_names(core, storage, tls_proxy))
    api = create_application(registry, core.addresses, permission_router)
    responses = ResponseCache(lambda: core.db.version)
    content_responses = ContentResponses(storage.content.reader, resizer)
    paid_content = PaidContent(storage.resolver, content_responses, storage.payments, core.addresses.gateway_origin)
    dashboard = DashboardApp(DocsApp(api, StaticFiles(BUILT_DOCS)), core.dashboard_files)
    gateway = StorageGatewayApp(
        dashboard, storage.resolver, content_responses, storage.hit_counter, responses, paid_content
    )
    observe = _request_observer(core.metrics)
    asgi = add_middleware(
        gateway,
        core.addresses,
        core.authenticator.identify_caller,
        find_known=core.known_credentials.find,
        limits=core.rate_limits,
        trusted=settings.trusted_proxies,
        observe=observe,
    )
    templates = build_template_services(core, storage, drivers)
    agents = build_agent_services(core, drivers, domains.domains, storage, templates.templates, asgi)
    archives = build_archive_services(core, storage, agents)
    hub = build_hub_services(core, storage, agents.library.skills)
    registry.add(build_launch_sources(storage, templates, agents, hub.hub))
    agents.add_to(registry)
    for services in (core, storage, templates, archives, hub):
        registry.add_fields(services)
    registry.add(_build_system(core, drivers, agents, checks))
    edge = edge_protocol(
        ProxyDependencies(
            addresses=core.addresses,
            recall=core.authenticator.recall_gateway_token,
            admit=core.authenticator.authenticate_gateway_token,
            find_route=agents.network.routes.find,
            dial=agents.registry.runtimes.dial,
            credential=agents.registry.runtimes.get_credential,
            record_use=agents.registry.runtimes.record_use,
            subscribe=core.gateway_tokens.subscribe,
            subscribe_routes=_route_subscription(agents, domains),
            observe=observe,
            cache=responses,
            trusted=settings.trusted_proxies,
            rate_limits=core.rate_limits,
        )
    )
    http = HttpServer(asgi, edge, proxy_socket(settings) if tls_proxy else None)
    return RoostServer(core, drivers, domains, storage, templates, agents, archives, hub, images, edge, http, tls_proxy)


def _build_system(
    core: CoreServices, drivers: Drivers, agents: AgentServices, checks: Mapping[str, Check]
) -> SystemService:
    settings = core.settings

    async def run_checks(report: Callable[[CheckResult], None]) -> None:
        found = await drivers.runtime.probe()

        def run() -> None:
            for result in check_parts(settings, drivers.runtime.name, found, core.db):
                report(result)

        await run_in_daemon_thread(run)

    return SystemService(
        core.db,
        agents.registry.runtimes.agents,
        agents.lifecycle.start.versions,
        software=SoftwareVersions(
            roost=__version__,
            python=platform.python_version(),
            platform=platform.platform(),
            database="SQLite" if core.db.is_sqlite else "PostgreSQL",
        ),
        host_id=core.host.id,
        read_disk=lambda: read_disk_space(settings.data),
        read_readiness=lambda: pass_checks(checks),
        run_checks=run_checks,
    )


def _route_subscription(agents: AgentServices, domains: DomainServices) -> Callable[[Callable[[str], None]], None]:
    def subscribe(listener: Callable[[str], None]) -> None:
        agents.network.routes.mirror.subscribe(listener)
        domains.domains.mirror.subscribe(listener)

    return subscribe


def _readiness_checks(
    settings: Settings, drivers: Drivers, storage: StorageServices
) -> Mapping[str, Callable[[], Awaitable[None]]]:
    async def list_containers() -> None:
        await drivers.runtime.list()

    async def check_disk() -> None:
        check_free_space(settings.data)

    return {"disk": check_disk, "containers": list_containers, "storage": storage.blobs.check}


def _request_observer(metrics: CollectorRegistry) -> Observe:
    """Return a callback that counts each finished request and writes it to the access log."""
    requests = Counter("roost_requests", "Requests", ["to", "status"], registry=metrics)
    seconds = Histogram("roost_request_seconds", "Duration of requests", ["to"], registry=metrics)
    request, second = cache(requests.labels), cache(seconds.labels)  # looking one up takes longer than counting

    def observe(record: AccessRecord) -> None:
        to = "platform" if record.agent_id is None else "agent"
        request(to, record.status).inc()
        second(to).observe(record.seconds)
        access_log.write_access_log(record)

    return observe
