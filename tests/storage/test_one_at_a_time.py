"""Writes that depend on a check wait for the tenant's lock; the second of two sees the first.

Each act is begun twice while the tenant is locked: none may finish before the lock is released, and then they run one
after the other.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from typing import Any

import pytest

from roost.core import ids
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.drivers.blob.drafts import DraftStore
from roost.drivers.blob.folder_store import FolderStore
from roost.drivers.network.none import NoNetwork
from roost.identity import tenants
from roost.identity.caller import Plan
from roost.storage.content.model import ContentNetwork
from roost.storage.files.groups.model import GroupNotFound
from roost.storage.files.groups.service import GroupService
from roost.storage.files.model import FileNotFound, StorageQuotaExceeded
from roost.storage.files.service import FileService
from roost.storage.files.tus import service as tus_service
from roost.storage.files.tus.model import NewTusUpload, TooManyTusUploads, TusUpload
from roost.storage.files.tus.service import TusUploadService
from roost.storage.files.uploads.service import UploadService
from roost.storage.gateways import model as gateways_model
from roost.storage.gateways.model import AccessControlLimitReached, GatewayLimitReached
from roost.storage.gateways.service import StorageGatewayService
from roost.storage.gateways.swaps import service as swaps_service
from roost.storage.gateways.swaps.model import HotSwap, SwapNotFound
from roost.storage.gateways.swaps.service import SwapService
from roost.storage.gateways.swaps.store import list_swaps
from roost.storage.pins import service as pins_service
from roost.storage.pins.model import PinNotFound, PinRequest, TooManyPins
from roost.storage.pins.service import PinService
from roost.storage.webhooks import service as webhooks_service
from roost.storage.webhooks.model import WebhookLimitReached, WebhookNotFound
from roost.storage.webhooks.service import WebhookService, WebhookUpdate
from tests.storage.meanwhile import ON_POSTGRESQL, waiting
from tests.storage.storage_env import StorageEnv
from tests.storage.webhooks.webhook_env import loopback_sender

URL = "https://receiver.example/hook"
PRIVATE = ContentNetwork.PRIVATE
Act = Callable[[], Coroutine[Any, Any, object]]


class ServiceSet:
    """All services that write for a tenant."""

    def __init__(self, env: StorageEnv) -> None:
        db, self.env, self.tenant = env.db, env, env.tenant_id
        self.files, self.gateways = FileService(db), StorageGatewayService(db)
        self.groups = GroupService(db, self.files)
        self.swaps = SwapService(db, self.gateways)
        self.pins = PinService(db, self.files, NoNetwork())
        self.webhooks = WebhookService(db, Sealer(Sensitive(bytes(32))), loopback_sender())
        small = FileService(db, dict.fromkeys(Plan, 15))
        uploads = UploadService(db, env.content, small, dict.fromkeys(Plan, 1000))
        drafts = DraftStore(env.folder / "drafts", FolderStore(env.folder / "blobs"))
        self.transfers = TusUploadService(db, drafts, env.content, uploads, "http://u")

    async def pin(self) -> str:
        return (await self.pins.add(self.tenant, PinRequest(str((await self.env.file(b"pinned")).cid)))).id

    async def transfer(self) -> tuple[TusUpload, str]:
        """Create an upload whose length is sent later."""
        return await self.transfers.begin(NewTusUpload(self.tenant, ids.new_id(), None, {}))


async def chunks(data: bytes) -> AsyncIterator[bytes]:
    yield data


Prepare = Callable[[ServiceSet], Awaitable[Act]]


async def a_file_deleted(services: ServiceSet) -> Act:
    file = await services.env.file(b"one")
    return lambda: services.files.delete(services.tenant, PRIVATE, file.id)


async def a_file_moved(services: ServiceSet) -> Act:
    file = await services.env.file(b"one")
    group = await services.groups.create(services.tenant, PRIVATE, "g", is_public=False)
    await services.groups.add_files(services.tenant, PRIVATE, group.id, [file.id])
    return lambda: services.groups.remove_files(services.tenant, PRIVATE, group.id, [file.id])


async def a_group_deleted(services: ServiceSet) -> Act:
    group = await services.groups.create(services.tenant, PRIVATE, "g", is_public=False)
    return lambda: services.groups.delete(services.tenant, PRIVATE, group.id)


async def a_group_changed(services: ServiceSet) -> Act:
    group = await services.groups.create(services.tenant, PRIVATE, "g", is_public=False)
    return lambda: services.groups.update(services.tenant, PRIVATE, group.id, "h", is_public=None)


async def a_gateway_made(services: ServiceSet) -> Act:
    return lambda: services.gateways.create(services.tenant, f"gate-{ids.new_id()[:18]}")


async def a_token_made(services: ServiceSet) -> Act:
    gateway = await services.gateways.create(services.tenant, "mine-gate")
    return lambda: services.gateways.create_access_token(services.tenant, gateway.id)


async def a_swap_made(services: ServiceSet) -> Act:
    one, other = await services.env.file(b"one"), await services.env.file(b"two")
    return lambda: services.swaps.put(services.tenant, PRIVATE, one.cid, other.cid)


async def a_swap_ended(services: ServiceSet) -> Act:
    one, other = await services.env.file(b"one"), await services.env.file(b"two")
    await services.swaps.put(services.tenant, PRIVATE, one.cid, other.cid)
    return lambda: services.swaps.delete(services.tenant, PRIVATE, one.cid)


async def a_pin_added(services: ServiceSet) -> Act:
    cid = (await services.env.file(b"pinned")).cid
    return lambda: services.pins.add(services.tenant, PinRequest(cid))


async def a_pin_taken_back(services: ServiceSet) -> Act:
    pin = await services.pin()
    return lambda: services.pins.delete(services.tenant, pin)


async def a_pin_let_go(services: ServiceSet) -> Act:
    pin = await services.pin()
    return lambda: services.pins.unpin(services.tenant, pin)


async def a_pin_renewed(services: ServiceSet) -> Act:
    pin = await services.pin()
    ask = (await services.pins.get(services.tenant, pin)).request
    return lambda: services.pins.replace(services.tenant, pin, ask)


async def a_transfer_begun(services: ServiceSet) -> Act:
    await services.transfer()
    return services.transfer


async def a_transfer_measured(services: ServiceSet) -> Act:
    begun = [await services.transfer() for _ in range(2)]

    async def measure() -> object:
        transfer, token = begun.pop()
        return await services.transfers.append(transfer.file_id, token, 0, chunks(b""), 10)

    return measure


async def a_webhook_made(services: ServiceSet) -> Act:
    return lambda: services.webhooks.create(services.tenant, URL, WebhookUpdate())


async def a_webhook_changed(services: ServiceSet) -> Act:
    made, _ = await services.webhooks.create(services.tenant, URL, WebhookUpdate())
    return lambda: services.webhooks.update(services.tenant, made.id, WebhookUpdate(description="d"))


async def a_webhook_deleted(services: ServiceSet) -> Act:
    made, _ = await services.webhooks.create(services.tenant, URL, WebhookUpdate())
    return lambda: services.webhooks.delete(services.tenant, made.id)


async def a_secret_rotated(services: ServiceSet) -> Act:
    made, _ = await services.webhooks.create(services.tenant, URL, WebhookUpdate())
    return lambda: services.webhooks.rotate_secret(services.tenant, made.id)


ACTS: Mapping[Prepare, type[Exception] | None] = {
    # act: result of the second call after the first
    a_file_deleted: FileNotFound,
    a_file_moved: FileNotFound,
    a_group_deleted: GroupNotFound,
    a_group_changed: None,
    a_gateway_made: GatewayLimitReached,
    a_token_made: AccessControlLimitReached,
    a_swap_made: None,
    a_swap_ended: SwapNotFound,
    a_pin_added: TooManyPins,
    a_pin_taken_back: PinNotFound,
    a_pin_let_go: PinNotFound,
    a_pin_renewed: PinNotFound,
    a_transfer_begun: TooManyTusUploads,
    a_transfer_measured: StorageQuotaExceeded,
    a_webhook_made: WebhookLimitReached,
    a_webhook_changed: None,
    a_webhook_deleted: WebhookNotFound,
    a_secret_rotated: None,
}


@pytest.fixture
def services(env: StorageEnv, monkeypatch: pytest.MonkeyPatch) -> ServiceSet:
    """Return services with limits of one object each, but two transfers and 15 bytes."""
    for module, name in (
        (gateways_model, "GATEWAY_LIMIT"),
        (gateways_model, "CONTROL_LIMIT"),
        (pins_service, "WAITING_LIMIT"),
        (webhooks_service, "WEBHOOK_LIMIT"),
    ):
        monkeypatch.setattr(module, name, 1)
    monkeypatch.setattr(tus_service, "UNFINISHED_LIMIT", 2)
    return ServiceSet(env)


@ON_POSTGRESQL
@pytest.mark.parametrize("prepare", ACTS, ids=lambda prepare: prepare.__name__)
async def test_of_two_at_once_one_is_the_second(services: ServiceSet, prepare: Prepare) -> None:
    told, results = ACTS[prepare], await run_both(services, await prepare(services))
    errors = [type(result) for result in results if isinstance(result, BaseException)]
    assert errors == ([told] if told else []), results


@ON_POSTGRESQL
async def test_of_two_swaps_at_once_the_second_counts(services: ServiceSet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swaps_service, "HISTORY_LIMIT", 1)
    results = await run_both(services, await a_swap_made(services))
    first, second = sorted((swap for swap in results if isinstance(swap, HotSwap)), key=lambda swap: swap.created_at)
    kept = await services.env.db.read(
        lambda connection: list_swaps(connection, services.tenant, PRIVATE, first.cid, 10)
    )
    assert kept == [second]


async def run_both(services: ServiceSet, act: Act) -> list[object]:
    """Return the results of two acts that begin while the tenant is locked."""
    with services.env.db.writer.begin() as held:
        tenants.lock_tenant(held, services.tenant)
        doing = [asyncio.create_task(act()) for _ in range(2)]
        async with asyncio.timeout(20):
            while await services.env.db.read(waiting) < len(doing):
                assert not any(one.done() for one in doing), "it looked while the tenant was held"
                await asyncio.sleep(0.005)
    return await asyncio.gather(*doing, return_exceptions=True)
