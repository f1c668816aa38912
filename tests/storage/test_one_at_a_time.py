"""What looks before it writes waits while somebody else holds the tenant; of two at once one comes second, and sees it.

Each act is begun twice while the tenant is held: none may be over before it is let go, and then one after the other is
as if nobody else had been there.
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
from roost.storage.files.errors import FileNotFound, StorageQuotaExceeded
from roost.storage.files.service import FileService
from roost.storage.gateways import model as gateways_model
from roost.storage.gateways.errors import AccessControlLimitReached, GatewayLimitReached
from roost.storage.gateways.service import StorageGatewayService
from roost.storage.groups.errors import GroupNotFound
from roost.storage.groups.service import GroupService
from roost.storage.pins import service as pins_service
from roost.storage.pins.errors import PinNotFound, TooManyPins
from roost.storage.pins.model import PinRequest
from roost.storage.pins.service import PinService
from roost.storage.swaps import service as swaps_service
from roost.storage.swaps.errors import SwapNotFound
from roost.storage.swaps.model import HotSwap
from roost.storage.swaps.service import SwapService
from roost.storage.swaps.store import history
from roost.storage.tus import service as tus_service
from roost.storage.tus.errors import TooManyTusUploads
from roost.storage.tus.model import NewTusUpload, TusUpload
from roost.storage.tus.service import TusUploadService
from roost.storage.uploads.service import UploadService
from roost.storage.webhooks import service as webhooks_service
from roost.storage.webhooks.errors import WebhookLimitReached, WebhookNotFound
from roost.storage.webhooks.service import WebhookService, WebhookUpdate
from tests.storage.house import House
from tests.storage.meanwhile import ON_POSTGRESQL, waiting
from tests.storage.webhooks.office import courier

URL = "https://receiver.example/hook"
PRIVATE = ContentNetwork.PRIVATE
Act = Callable[[], Coroutine[Any, Any, object]]


class Rooms:
    """All that writes for a tenant."""

    def __init__(self, place: House) -> None:
        db, self.place, self.tenant = place.db, place, place.tenant_id
        self.files, self.gateways = FileService(db), StorageGatewayService(db)
        self.groups = GroupService(db, self.files)
        self.swaps = SwapService(db, self.gateways)
        self.pins = PinService(db, self.files, NoNetwork())
        self.webhooks = WebhookService(db, Sealer(Sensitive(bytes(32))), courier())
        small = FileService(db, dict.fromkeys(Plan, 15))
        uploads = UploadService(db, place.content, small, dict.fromkeys(Plan, 1000))
        drafts = DraftStore(place.folder / "drafts", FolderStore(place.folder / "blobs"))
        self.transfers = TusUploadService(db, drafts, place.content, uploads, "http://u")

    async def pin(self) -> str:
        return (await self.pins.add(self.tenant, PinRequest(str((await self.place.file(b"pinned")).cid)))).id

    async def transfer(self) -> tuple[TusUpload, str]:
        """Of a length that is told later."""
        return await self.transfers.begin(NewTusUpload(self.tenant, ids.new_id(), None, {}))


async def pieces(data: bytes) -> AsyncIterator[bytes]:
    yield data


Prepare = Callable[[Rooms], Awaitable[Act]]


async def a_file_deleted(rooms: Rooms) -> Act:
    file = await rooms.place.file(b"one")
    return lambda: rooms.files.delete(rooms.tenant, PRIVATE, file.id)


async def a_file_moved(rooms: Rooms) -> Act:
    file = await rooms.place.file(b"one")
    group = await rooms.groups.create(rooms.tenant, PRIVATE, "g", is_public=False)
    await rooms.groups.add_files(rooms.tenant, PRIVATE, group.id, [file.id])
    return lambda: rooms.groups.remove_files(rooms.tenant, PRIVATE, group.id, [file.id])


async def a_group_deleted(rooms: Rooms) -> Act:
    group = await rooms.groups.create(rooms.tenant, PRIVATE, "g", is_public=False)
    return lambda: rooms.groups.delete(rooms.tenant, PRIVATE, group.id)


async def a_group_changed(rooms: Rooms) -> Act:
    group = await rooms.groups.create(rooms.tenant, PRIVATE, "g", is_public=False)
    return lambda: rooms.groups.update(rooms.tenant, PRIVATE, group.id, "h", is_public=None)


async def a_gateway_made(rooms: Rooms) -> Act:
    return lambda: rooms.gateways.create(rooms.tenant, f"gate-{ids.new_id()[:18]}")


async def a_token_made(rooms: Rooms) -> Act:
    gateway = await rooms.gateways.create(rooms.tenant, "mine-gate")
    return lambda: rooms.gateways.add_token(rooms.tenant, gateway.id)


async def a_swap_made(rooms: Rooms) -> Act:
    one, other = await rooms.place.file(b"one"), await rooms.place.file(b"two")
    return lambda: rooms.swaps.put(rooms.tenant, PRIVATE, one.cid, other.cid)


async def a_swap_ended(rooms: Rooms) -> Act:
    one, other = await rooms.place.file(b"one"), await rooms.place.file(b"two")
    await rooms.swaps.put(rooms.tenant, PRIVATE, one.cid, other.cid)
    return lambda: rooms.swaps.delete(rooms.tenant, PRIVATE, one.cid)


async def a_pin_asked_for(rooms: Rooms) -> Act:
    cid = (await rooms.place.file(b"pinned")).cid
    return lambda: rooms.pins.add(rooms.tenant, PinRequest(cid))


async def a_pin_taken_back(rooms: Rooms) -> Act:
    pin = await rooms.pin()
    return lambda: rooms.pins.delete(rooms.tenant, pin)


async def a_pin_let_go(rooms: Rooms) -> Act:
    pin = await rooms.pin()
    return lambda: rooms.pins.unpin(rooms.tenant, pin)


async def a_pin_renewed(rooms: Rooms) -> Act:
    pin = await rooms.pin()
    ask = (await rooms.pins.get(rooms.tenant, pin)).ask
    return lambda: rooms.pins.replace(rooms.tenant, pin, ask)


async def a_transfer_begun(rooms: Rooms) -> Act:
    await rooms.transfer()
    return rooms.transfer


async def a_transfer_measured(rooms: Rooms) -> Act:
    begun = [await rooms.transfer() for _ in range(2)]

    async def measure() -> object:
        transfer, token = begun.pop()
        return await rooms.transfers.append(transfer.file_id, token, 0, pieces(b""), 10)

    return measure


async def a_webhook_made(rooms: Rooms) -> Act:
    return lambda: rooms.webhooks.create(rooms.tenant, URL, WebhookUpdate())


async def a_webhook_changed(rooms: Rooms) -> Act:
    made = await rooms.webhooks.create(rooms.tenant, URL, WebhookUpdate())
    return lambda: rooms.webhooks.update(rooms.tenant, made.webhook.id, WebhookUpdate(description="d"))


async def a_webhook_deleted(rooms: Rooms) -> Act:
    made = await rooms.webhooks.create(rooms.tenant, URL, WebhookUpdate())
    return lambda: rooms.webhooks.delete(rooms.tenant, made.webhook.id)


async def a_secret_rotated(rooms: Rooms) -> Act:
    made = await rooms.webhooks.create(rooms.tenant, URL, WebhookUpdate())
    return lambda: rooms.webhooks.rotate_secret(rooms.tenant, made.webhook.id)


ACTS: Mapping[Prepare, type[Exception] | None] = {
    # what is done: what the second is told, where the first has done it
    a_file_deleted: FileNotFound,
    a_file_moved: FileNotFound,
    a_group_deleted: GroupNotFound,
    a_group_changed: None,
    a_gateway_made: GatewayLimitReached,
    a_token_made: AccessControlLimitReached,
    a_swap_made: None,
    a_swap_ended: SwapNotFound,
    a_pin_asked_for: TooManyPins,
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
def rooms(place: House, monkeypatch: pytest.MonkeyPatch) -> Rooms:
    """Of everything that is counted there may be one, but for transfers: two, and 15 bytes."""
    for module, name in (
        (gateways_model, "GATEWAY_LIMIT"),
        (gateways_model, "CONTROL_LIMIT"),
        (pins_service, "WAITING_LIMIT"),
        (webhooks_service, "WEBHOOK_LIMIT"),
    ):
        monkeypatch.setattr(module, name, 1)
    monkeypatch.setattr(tus_service, "UNFINISHED_LIMIT", 2)
    return Rooms(place)


@ON_POSTGRESQL
@pytest.mark.parametrize("prepare", ACTS, ids=lambda prepare: prepare.__name__)
async def test_of_two_at_once_one_is_the_second(rooms: Rooms, prepare: Prepare) -> None:
    told, results = ACTS[prepare], await both(rooms, await prepare(rooms))
    errors = [type(result) for result in results if isinstance(result, BaseException)]
    assert errors == ([told] if told else []), results


@ON_POSTGRESQL
async def test_of_two_swaps_at_once_the_second_counts(rooms: Rooms, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swaps_service, "HISTORY_LIMIT", 1)
    results = await both(rooms, await a_swap_made(rooms))
    first, second = sorted((swap for swap in results if isinstance(swap, HotSwap)), key=lambda swap: swap.created_at)
    kept = await rooms.place.db.read(lambda connection: history(connection, rooms.tenant, PRIVATE, first.cid, 10))
    assert kept == [second]


async def both(rooms: Rooms, act: Act) -> list[object]:
    """What becomes of two that begin while the tenant is held, and go on together."""
    with rooms.place.db.writer.begin() as held:
        tenants.lock_tenant(held, rooms.tenant)
        doing = [asyncio.create_task(act()) for _ in range(2)]
        async with asyncio.timeout(20):
            while await rooms.place.db.read(waiting) < len(doing):
                assert not any(one.done() for one in doing), "it looked while the tenant was held"
                await asyncio.sleep(0.005)
    return await asyncio.gather(*doing, return_exceptions=True)
