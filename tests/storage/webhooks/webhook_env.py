"""Webhooks with a database of their own and a sender that may connect to loopback."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import httpx2

from roost.core import clock
from roost.core.db import Database
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.drivers.http_sender.contract import HttpSender
from roost.drivers.http_sender.guarded import GuardedHttpSender
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.profile import V1
from roost.storage.files.model import File, FileMetadata
from roost.storage.files.service import FileService, NewFile
from roost.storage.webhooks.model import DeliveryState, Webhook, WebhookDelivery
from roost.storage.webhooks.sender import WebhookSender
from roost.storage.webhooks.service import WebhookService, WebhookUpdate
from roost.work import OperationWorker
from tests.storage.storage_env import StorageEnv
from tests.support.server import NO_AUTHORITIES

KEY = Sensitive(bytes(32))
URL = "https://receiver.example/hook"


def loopback_sender(timeout: float = 15.0) -> GuardedHttpSender:
    return GuardedHttpSender(
        lambda _: httpx2.AsyncHTTPTransport(verify=NO_AUTHORITIES), lambda _: None, timeout=timeout
    )


class CreatedWebhook(NamedTuple):
    webhook: Webhook
    secret: Sensitive[str]


@dataclass
class WebhookEnv:
    env: StorageEnv
    db: Database
    timeout: float = 15.0
    sealer: Sealer = field(default_factory=lambda: Sealer(KEY))

    def __post_init__(self) -> None:
        self.files = FileService(self.db)
        self.webhooks = WebhookService(self.db, self.sealer, loopback_sender())
        self.files.add_listener(self.webhooks.add_file_event)

    @property
    def tenant(self) -> str:
        return self.env.tenant_id

    async def create(self, url: str = URL, **fields: object) -> CreatedWebhook:
        update = WebhookUpdate(**fields)  # type: ignore[arg-type] - literals of the tests
        return CreatedWebhook(*await self.webhooks.create(self.tenant, url, update))

    async def add(
        self,
        data: bytes = b"one",
        metadata: FileMetadata | None = None,
        network: ContentNetwork = ContentNetwork.PRIVATE,
    ) -> File:
        async with self.env.content.receive(V1) as pack:
            await pack.write(data)
            tree = await pack.end_file()
            new = NewFile(self.tenant, network, str(tree.cid), tree.size, "text/plain", metadata or FileMetadata("n"))
            return await pack.commit(lambda connection: self.files.add(connection, new, pack.pack_id))

    async def list_deliveries(self, webhook: Webhook, state: DeliveryState | None = None) -> list[WebhookDelivery]:
        """List the deliveries, oldest first."""
        page, _ = await self.webhooks.list_deliveries(self.tenant, webhook.id, state, None, 100)
        return list(reversed(page))

    async def wait_for_deliveries(
        self, webhook: Webhook, *states: DeliveryState, attempts: int = 1
    ) -> list[WebhookDelivery]:
        """Wait until each delivery is in one of the states after that many attempts; return them."""

        async def find() -> list[WebhookDelivery] | None:
            found = await self.list_deliveries(webhook)
            return found if all(one.state in states and one.attempts >= attempts for one in found) else None

        return await until(find)

    @asynccontextmanager
    async def sending(self, sender: HttpSender | None = None) -> AsyncIterator[WebhookSender]:
        """Run a worker that sends, and stop it without waiting for attempts in progress."""
        queue = OperationWorker(self.db, owner="test")
        webhook_sender = WebhookSender(self.db, queue, self.sealer, sender or loopback_sender(self.timeout))
        await queue.start()
        try:
            yield webhook_sender
        finally:
            await queue.stop(grace=0)


class FakeClock:
    """Clock that a test can advance while it runs."""

    def __init__(self) -> None:
        self._real = clock.utc_now
        self._ahead = timedelta(0)

    def __call__(self) -> datetime:
        return self._real() + self._ahead

    def advance(self, by: timedelta) -> None:
        self._ahead += by


async def until(condition: Callable[[], Awaitable[Any]]) -> Any:
    async with asyncio.timeout(20):
        while not (found := await condition()):
            await asyncio.sleep(0.01)
    return found
