"""A server: the services of both APIs, and the HTTP stack in front of them."""

import asyncio
import platform
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.types import ASGIApp

from roost import __version__
from roost.agents.lifecycle.hosts.agent_servers import KNOWN_SECONDS
from roost.agents.lifecycle.system.model import CheckResult, SoftwareVersions
from roost.agents.lifecycle.system.service import SystemService
from roost.agents.workspace.git.manifests import RepositoryManifests, has_manifests
from roost.app.agent_services import AgentServices, build_agent_services, build_archive_services, start_agent_services
from roost.app.core_services import CoreServices, build_core_services
from roost.app.doctor import check_parts
from roost.app.domain_services import (
    DomainServices,
    build_domain_services,
    build_tls_proxy,
    proxy_socket,
    start_domain_services,
)
from roost.app.drivers import Drivers, close_runtimes, create_git_repositories
from roost.app.storage_services import (
    StorageServices,
    build_storage_services,
    measure_content,
    start_storage_services,
)
from roost.core import log
from roost.core.db import ChangeListener, UsageExchange
from roost.core.machine.disk_space import READY_RESERVE, read_disk_space
from roost.core.machine.threads import run_in_daemon_thread
from roost.core.periodic import Backoff
from roost.core.problem import ServiceUnavailable
from roost.drivers.tls_proxy.contract import TlsListeners
from roost.events.service import EventService
from roost.http.dashboard.application import DashboardApp
from roost.http.dashboard.docs_application import BUILT_DOCS, DocsApp
from roost.http.dashboard.static_files import BUILT_FILES, StaticFiles
from roost.http.edge.dependencies import ProxyDependencies
from roost.http.edge.protocol import EdgeHttpProtocol, edge_protocol
from roost.http.server.application import create_application
from roost.http.server.health import Check, ServerHealth, pass_checks
from roost.http.server.server import HttpServer
from roost.http.stack.middleware import add_middleware
from roost.http.stack.rate_limits import RateLimits
from roost.http.storage_gateway.application import StorageGatewayApp
from roost.http.storage_gateway.content_responses import ContentResponses
from roost.http.storage_gateway.images import DiskCache, ImageResizer
from roost.http.storage_gateway.paid_content import PaidContent
from roost.http.storage_gateway.response_cache import ResponseCache
from roost.http.tls.certificates import CertificateNames, permission_router
from roost.settings import BadSettings, Settings
from roost.web import access_log
from roost.web.access_log import AccessRecord, Observe
from roost.web.service_registry import ServiceGroup, ServiceRegistry

_STOP_GRACE = 2.0
_HAND_OVER_SECONDS, _HAND_OVER_PAUSE = 10.0, 0.1
_WAIT_SECONDS = 3.0  # less than connections get to end
_SAVE_SECONDS = 10.0
_IMAGE_CACHE_BYTES = 1024**3
_log = log.get_logger("server")


class DiskFull(ServiceUnavailable):
    message = "The disk is full"


@dataclass(frozen=True)
class MonitoringServices(ServiceGroup):
    """What operators learn of requests, clients of changes, and servers of each other."""

    metrics: CollectorRegistry
    changes: ChangeListener
    usage: UsageExchange
    events: EventService


@dataclass(frozen=True)
class RoostServer:
    """A whole server. `start` it before it listens, `stop` it when it no longer listens."""

    core: CoreServices
    drivers: Drivers
    monitoring: MonitoringServices
    domains: DomainServices
    storage: StorageServices
    agents: AgentServices
    edge: type[EdgeHttpProtocol]
    http: HttpServer
    exit_stack: AsyncExitStack = field(default_factory=AsyncExitStack, init=False)

    async def start(self) -> None:
        """Start the services in order; a failure stops the started ones.

        Raises RuntimeFailed when no container can be started, BlobStoreFailed when the blob store does not work,
        TlsProxyFailed when Caddy does not start.
        """
        self.agents.registry.runtimes.runtime.take_priority()
        storage, tls_proxy, operations = self.drivers.storage, self.domains.tls_proxy, self.core.operations
        events, rotation_watch = self.monitoring.events, self.core.identity.rotation_watch
        async with AsyncExitStack() as stack:
            stack.callback(self.core.close)
            for driver in (storage.images, storage.text_extractor, storage.embedding_model):
                stack.push_async_callback(driver.close)
            stack.push_async_callback(close_runtimes, self.drivers.runtimes)
            stack.push_async_callback(self.monitoring.changes.stop)
            self.monitoring.changes.start()
            stack.push_async_callback(self.monitoring.usage.stop)
            await self.monitoring.usage.start()
            stack.push_async_callback(events.stop)
            events.start()
            stack.push_async_callback(rotation_watch.stop)
            rotation_watch.start()
            await start_domain_services(self.domains, stack)
            maintenance = await start_storage_services(self.core.db, self.storage, storage, stack)
            if self.core.settings.catalogue:
                await self.agents.library.packaged_templates.register()
            await start_agent_services(self.agents, stack)
            stack.push_async_callback(operations.stop, grace=_STOP_GRACE)  # the next start finishes the rest
            await operations.start()
            stack.callback(self.edge.pool.close)
            if tls_proxy is not None:
                stack.push_async_callback(tls_proxy.stop)
                await tls_proxy.start()
            maintenance.start()  # last, because the start would wait for its reads of all packs
            await self.exit_stack.enter_async_context(stack.pop_all())

    async def serve(self, listeners: Sequence[socket.socket], stop: asyncio.Event) -> None:
        """Answer requests until `stop` is set, and then until other servers have the agents that they can serve."""
        reconciler = self.agents.lifecycle.reconciler
        self.agents.access.takeover.start(reconciler.adopt_agents, reconciler.open_relays)
        await self.http.run_on(listeners, stop, self.leave)

    async def leave(self) -> None:
        """Let other servers take the agents of a shared runtime, if there are any, while this one still answers.

        Then answer requests that wait for an agent before their connections are closed.
        """
        try:
            if await self.agents.access.takeover.has_takers():
                await self._hand_over()
        except Exception:  # noqa: BLE001 - the server stops anyway, and the others take its agents over when it is gone
            _log.exception("agents.not_handed_over")
        self.core.operations.limit_waits(_WAIT_SECONDS)
        self.agents.setup.stored.channel_validator.stop()

    async def _hand_over(self) -> None:
        """Wait until other servers have the agents and believe that, and requests of agents to this one have ended."""
        access, registry, backoff = self.agents.access, self.agents.registry, Backoff(_HAND_OVER_PAUSE)
        access.servers.forget_locations()
        self.edge.drain_connections()
        await access.takeover.stop()
        await self.core.operations.stop(grace=_STOP_GRACE)  # the next server of the agent finishes the rest
        await self.agents.lifecycle.reconciler.pause()  # it would close relays that are in use
        registry.runtimes.agents.passing.update(await self._list_shared())
        await access.hosts.mark_leaving()
        with suppress(TimeoutError):
            async with asyncio.timeout(_HAND_OVER_SECONDS):
                while await self._list_shared() and await access.takeover.has_takers():
                    await backoff.pause()
                await asyncio.sleep(KNOWN_SECONDS)
                while registry.relays.drain_connections():
                    await backoff.pause()
        _log.info("agents.handed_over", left=len(await self._list_shared()))

    async def _list_shared(self) -> Collection[str]:
        """List the ids of this server's agents that another one could serve."""
        is_shared = self.agents.registry.runtimes.runtime.assignments.is_shared
        return [agent.id for agent in await self.agents.registry.host_agents.list() if is_shared(agent.id)]

    async def stop(self, *, keep_agents: bool = False) -> None:
        """Stop all services cleanly, and all agents unless `keep_agents`; the next start brings back or adopts them.

        Agents of a shared runtime go on, and other servers take them over.
        """
        await self.agents.access.takeover.stop()
        if keep_agents:
            self.agents.lifecycle.reconciler.keep_containers()
        elif not self.agents.registry.runtimes.runtime.is_shared:  # whose agents go on
            await self.agents.lifecycle.workspace.automatic.save_changes(_SAVE_SECONDS)
        await self.exit_stack.aclose()


def build_server(settings: Settings, drivers: Drivers, tls_listeners: TlsListeners | None = None) -> RoostServer:
    """Build the services and the HTTP stack over the database that the settings name.

    Nothing runs before `RoostServer.start`. Raises BadSettings, TlsProxyFailed.
    """
    tls_proxy = build_tls_proxy(settings, tls_listeners) if tls_listeners else None
    core, registry = build_core_services(settings), ServiceRegistry()
    responses = ResponseCache(lambda: core.db.version)
    drivers = _share_repositories(core, drivers)
    domains = build_domain_services(core, drivers.dns, tls_proxy)
    storage = build_storage_services(core, drivers.storage, domains.domains)
    limits = RateLimits(
        caller_requests=settings.rate_limit,
        caller_bytes=settings.rate_limit_bytes,
        host_requests=settings.host_rate_limit,
        host_bytes=settings.host_rate_limit_bytes,
        limits_loopback=settings.rate_limit_loopback,
    )
    failures = core.identity.sessions.failed_logins.limiter
    usage = UsageExchange(core.db, [*limits.limiters, *([] if failures is None else [failures])])
    monitoring = MonitoringServices(CollectorRegistry(), ChangeListener(core.db), usage, EventService(core.db))
    observe = _request_observer(monitoring.metrics)
    api = create_application(registry, core.addresses, permission_router)
    asgi = add_middleware(
        _build_gateway(core, drivers, storage, responses, api),
        core.addresses,
        core.identity.authenticator.identify_caller,
        find_known=core.identity.known_credentials.find,
        limits=limits,
        trusted=settings.trusted_proxies,
        observe=observe,
    )
    agents = build_agent_services(core, drivers, domains.domains, storage, asgi)
    checks = _readiness_checks(settings, drivers, agents)
    for services in (core, monitoring, storage, agents, build_archive_services(core, storage, agents)):
        registry.add_group(services)
    servers, token = agents.access.servers, settings.metrics_token
    registry.add(ServerHealth(checks, monitoring.metrics, token, is_stopping=lambda: servers.is_leaving))
    registry.add(CertificateNames(core.addresses, core.identity.gateway_tokens, storage.gateways.gateways, tls_proxy))
    registry.add(_build_system(core, drivers, agents, checks))
    measure_content(storage.content, monitoring.metrics)
    runtimes, tokens = agents.registry.runtimes, core.identity.gateway_tokens
    has_names = settings.agent_ports is None  # else another server does not know the address of a request
    others = servers if settings.peer_address and has_names else None
    edge = edge_protocol(
        ProxyDependencies(
            addresses=core.addresses,
            recall=core.identity.authenticator.recall_gateway_token,
            admit=core.identity.authenticator.authenticate_gateway_token,
            find_route=agents.network.routes.find,
            dial=runtimes.dial,
            credential=runtimes.get_credential,
            record_use=runtimes.record_use,
            subscribe=tokens.subscribe,
            subscribe_routes=_route_subscription(agents, domains),
            observe=observe,
            cache=responses,
            trusted=settings.trusted_proxies,
            servers=others,
            rate_limits=limits,
        )
    )
    http = HttpServer(asgi, edge, proxy_socket(settings) if tls_proxy else None)
    agents.access.servers.serve(http.serve_peer)
    return RoostServer(core, drivers, monitoring, domains, storage, agents, edge, http)


def _share_repositories(core: CoreServices, drivers: Drivers) -> Drivers:
    """Keep Git repositories in the blob store if the settings say so.

    Raises BadSettings for folders if the blob store has some already, which would be older soon.
    """
    if core.settings.git_storage == "folder":
        if core.db.run(has_manifests):
            raise BadSettings("git_storage: the blob store has Git repositories already; set it to `blobs`")
        return drivers
    manifests = RepositoryManifests(core.db, core.host.id)
    return replace(drivers, git=create_git_repositories(core.settings, drivers.storage.blobs, manifests))


def _build_gateway(
    core: CoreServices, drivers: Drivers, storage: StorageServices, responses: ResponseCache, api: ASGIApp
) -> StorageGatewayApp:
    """Build the application of storage gateways, in front of the dashboard, its docs, and `api`."""
    disk_cache = DiskCache(core.settings.data / "cache/images", _IMAGE_CACHE_BYTES)
    resizer = ImageResizer(storage.content.reader, drivers.storage.images, disk_cache)
    content, resolver = ContentResponses(storage.content.reader, resizer), storage.gateways.resolver
    paid_content = PaidContent(resolver, content, storage.gateways.payments, core.addresses.gateway_origin)
    dashboard = DashboardApp(DocsApp(api, StaticFiles(BUILT_DOCS)), StaticFiles(BUILT_FILES))
    return StorageGatewayApp(dashboard, resolver, content, storage.gateways.hit_counter, responses, paid_content)


def _build_system(
    core: CoreServices, drivers: Drivers, agents: AgentServices, checks: Mapping[str, Check]
) -> SystemService:
    settings = core.settings

    async def run_checks(report: Callable[[CheckResult], None]) -> None:
        found = {runtime.name: await runtime.probe() for runtime in drivers.runtimes}

        def run() -> None:
            for result in check_parts(settings, found, core.db):
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


def _readiness_checks(settings: Settings, drivers: Drivers, agents: AgentServices) -> Mapping[str, Check]:
    async def list_containers() -> None:
        await drivers.runtime.list()

    async def check_disk() -> None:
        disk = read_disk_space(settings.data)
        if disk.is_read_only or disk.free < READY_RESERVE:
            raise DiskFull(f"{settings.data} is on a read-only disk, or has only {disk.free // 1024**2} MiB free")

    return {
        "database": agents.access.hosts.check_database,
        "disk": check_disk,
        "containers": list_containers,
        "storage": drivers.storage.blobs.check,
    }


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
