"""The server: core services, the services of both APIs, and the HTTP hosts in front of them."""

from collections.abc import Sequence
from functools import cache

from prometheus_client import Counter, Histogram

from roost.app.agent_services import AgentServices
from roost.app.core_services import CoreServices
from roost.app.drivers import Drivers, create_blob_store
from roost.app.storage_services import StorageServices
from roost.config import Settings
from roost.drivers.image.pillow import PillowRenderer
from roost.hosts.application import application
from roost.hosts.edge.dependencies import ProxyDependencies
from roost.hosts.edge.protocol import edge_protocol
from roost.hosts.health import Check
from roost.hosts.middleware import add_middleware
from roost.hosts.server import HttpServer
from roost.hosts.storage_gateway.application import StorageGatewayApp
from roost.hosts.storage_gateway.content_responses import ContentResponses
from roost.hosts.storage_gateway.disk_cache import DiskCache
from roost.hosts.storage_gateway.image_resizer import ImageResizer
from roost.net.addresses import Network
from roost.web import access_log
from roost.web.access_log import AccessRecord, Observe

_STOP_GRACE_SECONDS = 2.0
_IMAGE_CACHE_BYTES = 1024**3
"""Maximum bytes of cached resized images."""


class RoostServer:
    """A connected server; call `start` before it listens and `stop` after it has stopped listening."""

    def __init__(self, settings: Settings, drivers: Drivers) -> None:
        self.settings = settings
        self.runtime = drivers.runtime
        self._core = core = CoreServices(settings)
        self.addresses, self.db, self.queue = core.addresses, core.db, core.queue
        self.keys, self.gateways = core.keys, core.gateways
        self.agents = AgentServices(core, drivers)
        self.storage = StorageServices(core, create_blob_store(settings))
        self.repository, self.runtimes, self.models = self.agents.repository, self.agents.runtimes, self.agents.models
        api = application(core.services, core.addresses.agents_url, self._checks(), core.registry)
        self._images = PillowRenderer()
        resizer = ImageResizer(
            self.storage.content.reader, self._images, DiskCache(settings.data / "cache/images", _IMAGE_CACHE_BYTES)
        )
        responses = ContentResponses(self.storage.content.reader, resizer)
        gateway = StorageGatewayApp(api, self.storage.serving, responses, self.storage.counter)
        self._observed = self._create_observer()
        trusted = settings.trusted_proxies
        self.asgi = add_middleware(
            gateway, core.addresses, core.authenticator.authenticate_any, trusted=trusted, observe=self._observed
        )
        self.agents.connect(self.asgi)
        self.edge = edge_protocol(self._proxy_dependencies(trusted))
        self.http = HttpServer(self.asgi, self.edge)

    async def start(self) -> None:
        """Start. Raises RuntimeFailed if no container can be started, BlobStoreFailed if nothing can be stored."""
        await self.storage.start()
        await self.agents.start()
        await self.queue.start()

    async def stop(self) -> None:
        """Stop all agents cleanly; the next start restores them."""
        self.edge.live.close()
        await self.queue.stop(grace=_STOP_GRACE_SECONDS)  # the next start resumes interrupted operations
        await self.agents.stop()
        await self.storage.stop()
        await self._images.close()
        self._core.close()

    def _checks(self) -> dict[str, Check]:
        async def containers() -> None:
            await self.runtime.list()

        return {"database": self.db.ping, "containers": containers, "storage": self.storage.check}

    def _proxy_dependencies(self, trusted: Sequence[Network]) -> ProxyDependencies:
        return ProxyDependencies(
            addresses=self.addresses,
            admit=self._core.authenticator.authenticate_gateway_token,
            dial=self.runtimes.dial_gateway,
            credential=self.runtimes.get_credential,
            subscribe=self.gateways.subscribe,
            observe=self._observed,
            trusted=trusted,
        )

    def _create_observer(self) -> Observe:
        """Create the observer that logs and counts every finished request."""
        registry = self._core.registry
        requests = Counter("roost_requests", "Requests", ["to", "status"], registry=registry)
        seconds = Histogram("roost_request_seconds", "Duration of requests", ["to"], registry=registry)

        request, second = cache(requests.labels), cache(seconds.labels)  # looking up a label costs more than counting

        def observe(record: AccessRecord) -> None:
            to = "platform" if record.agent_id is None else "agent"
            request(to, record.status).inc()
            second(to).observe(record.seconds)
            access_log.write_access_log(record)

        return observe
