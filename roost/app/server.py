"""A server: ground, wings, and the addresses in front of them, made one."""

from collections.abc import Sequence
from functools import cache

from prometheus_client import Counter, Histogram

from roost.app.agent_services import AgentServices
from roost.app.core_services import CoreServices
from roost.app.drivers import Drivers, blobs
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

_STOP_GRACE = 2.0
_SHELF = 1024**3
"""Bytes of resized images that are kept."""


class RoostServer:
    """A server: every room, connected. `start` it before it listens, `stop` it when it does not listen any more."""

    def __init__(self, settings: Settings, outside: Drivers) -> None:
        self.settings = settings
        self.runtime = outside.runtime
        self._ground = ground = CoreServices(settings)
        self.addresses, self.db, self.queue = ground.addresses, ground.db, ground.queue
        self.keys, self.gateways = ground.keys, ground.gateways
        self.agents = AgentServices(ground, outside)
        self.storage = StorageServices(ground, blobs(settings))
        self.roster, self.reach, self.models = self.agents.roster, self.agents.reach, self.agents.models
        api = application(ground.rooms, ground.addresses.agents_url, self._checks(), ground.registry)
        self._images = PillowRenderer()
        pictures = ImageResizer(
            self.storage.content.reader, self._images, DiskCache(settings.data / "cache/images", _SHELF)
        )
        answers = ContentResponses(self.storage.content.reader, pictures)
        served = StorageGatewayApp(api, self.storage.serving, answers, self.storage.counter)
        self._observed = self._count()
        trusted = settings.trusted_proxies
        self.asgi = add_middleware(
            served, ground.addresses, ground.door.authenticate_any, trusted=trusted, observe=self._observed
        )
        self.agents.connect(self.asgi)
        self.edge = edge_protocol(self._gate(trusted))
        self.http = HttpServer(self.asgi, self.edge)

    async def start(self) -> None:
        """Raises RuntimeFailed when no container can be started, BlobFailed when nothing can be kept."""
        await self.storage.start()
        await self.agents.start()
        await self.queue.start()

    async def stop(self) -> None:
        """End all agents, cleanly; the next start brings them back."""
        self.edge.live.close()
        await self.queue.stop(grace=_STOP_GRACE)  # what is cut off is finished by the next start
        await self.agents.stop()
        await self.storage.stop()
        await self._images.close()
        self._ground.close()

    def _checks(self) -> dict[str, Check]:
        async def containers() -> None:
            await self.runtime.list()

        return {"database": self.db.ping, "containers": containers, "storage": self.storage.check}

    def _gate(self, trusted: Sequence[Network]) -> ProxyDependencies:
        return ProxyDependencies(
            addresses=self.addresses,
            admit=self._ground.door.authenticate_gateway_token,
            dial=self.reach.dial_gateway,
            credential=self.reach.get_credential,
            subscribe=self.gateways.subscribe,
            observe=self._observed,
            trusted=trusted,
        )

    def _count(self) -> Observe:
        """Every request that is over is a line in the log and a number for the operator."""
        registry = self._ground.registry
        requests = Counter("roost_requests", "Requests", ["to", "status"], registry=registry)
        seconds = Histogram("roost_request_seconds", "Duration of requests", ["to"], registry=registry)

        request, second = cache(requests.labels), cache(seconds.labels)  # to find one takes longer than to count

        def observe(passage: AccessRecord) -> None:
            to = "platform" if passage.agent_id is None else "agent"
            request(to, passage.status).inc()
            second(to).observe(passage.seconds)
            access_log.write_access_log(passage)

        return observe
