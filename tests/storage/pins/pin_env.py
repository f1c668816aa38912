"""Everything that a pin passes through: real database, content and queue, and a network of the test's own."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from roost import work
from roost.core.db import Database
from roost.drivers.network.contract import ContentNotAtSource, ContentSource, PublicNetwork
from roost.identity.caller import Plan
from roost.storage.content.model import ContentNetwork, ContentScope
from roost.storage.content.unixfs.cid import Cid
from roost.storage.files.model import File, FileFilter
from roost.storage.files.service import FileService
from roost.storage.pins.model import Pin, PinRequest, PinState
from roost.storage.pins.retrieve import PROGRESS_TIMEOUT, PinRetrieval
from roost.storage.pins.service import PinService
from tests.storage.storage_env import StorageEnv

LIMIT = 8_000_000


class CarSource(ContentSource):
    """Serves its CARs; while closed it sends half of a CAR and then waits until it is opened."""

    def __init__(self, name: str, cars: Mapping[str, bytes], *, is_open: bool = True) -> None:
        super().__init__(name)
        self.cars = dict(cars)
        self.requested: list[str] = []
        self.open = asyncio.Event()
        if is_open:
            self.open.set()

    async def car(self, cid: str) -> AsyncGenerator[bytes, None]:
        self.requested.append(cid)
        if cid not in self.cars:
            raise ContentNotAtSource
        data = self.cars[cid]
        yield data[: len(data) // 2]
        await self.open.wait()
        yield data[len(data) // 2 :]


@dataclass
class FakeNetwork(PublicNetwork):
    car_sources: list[CarSource] = field(default_factory=list[CarSource])

    def sources(self, hosts: Sequence[str] = ()) -> Sequence[ContentSource]:
        return [car_source for car_source in self.car_sources if not hosts or car_source.name in hosts]


@dataclass
class PinEnv:
    env: StorageEnv
    queue: work.OperationWorker
    files: FileService
    pins: PinService

    async def pin(self, cid: Cid, name: str | None = None) -> Pin:
        return await self.pins.add(self.env.tenant_id, PinRequest(str(cid), name))

    async def status(self, pin: Pin) -> PinState:
        return (await self.pins.get(pin.tenant_id, pin.id)).status

    async def until(self, pin: Pin, *wanted: PinState) -> PinState:
        async with asyncio.timeout(30):
            while (now := await self.status(pin)) not in wanted:
                await asyncio.sleep(0.02)
        return now

    async def all_files(self, tenant_id: str | None = None) -> Sequence[File]:
        page, _ = await self.files.list(tenant_id or self.env.tenant_id, ContentNetwork.PUBLIC, FileFilter(), None, 100)
        return page

    async def read(self, cid: str, *path: str) -> bytes:
        scope = ContentScope(ContentNetwork.PUBLIC, self.env.tenant_id)
        stat = (await self.env.reader.resolve(scope, Cid.parse(cid), path))[-1]
        return b"".join([piece async for piece in self.env.reader.stream_file(scope, stat)])


@asynccontextmanager
async def open_pin_env(
    db: Database,
    env: StorageEnv,
    *car_sources: CarSource,
    network: PublicNetwork | None = None,
    most: int = LIMIT,
    capacity: int | None = None,
    progress_timeout: float = PROGRESS_TIMEOUT,
) -> AsyncIterator[PinEnv]:
    """`network` in place of shelves; `most` is the limit of the largest plan, `capacity` all that a tenant may have."""
    queue, network = work.OperationWorker(db, owner="test"), network or FakeNetwork(list(car_sources))
    files = FileService(db, dict.fromkeys(Plan, capacity))

    async def limit(_: str) -> int:
        return LIMIT

    PinRetrieval(db, queue, env.content, files, network, limit, most, progress_timeout=progress_timeout)
    pins = PinService(db, files, network)
    await queue.start()
    try:
        yield PinEnv(env, queue, files, pins)
    finally:
        await queue.stop(grace=0.1)
