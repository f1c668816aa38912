"""What is public is offered, what is private never, whatever the order of changes and the network's failures."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest
from sqlalchemy import Connection

from roost import work
from roost.core import clock
from roost.core.db import Database
from roost.drivers.network.contract import NetworkAnnouncer, NetworkRefused, SourceFailed
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.profile import V0, V1, ImportProfile
from roost.storage.files.model import File, FileMetadata
from roost.storage.files.service import FileService, NewFile
from roost.storage.pins import announcements
from roost.storage.pins.announcements import RECONCILE, SURVEY, Announcements
from tests.storage.storage_env import CONTENT, StorageEnv


@dataclass
class FakeAnnouncer(NetworkAnnouncer):
    """A network that remembers what it was given, and every CID that it was ever asked about."""

    given: dict[str, bytes] = field(default_factory=dict[str, bytes])
    heard: list[str] = field(default_factory=list[str])
    failures: list[Exception] = field(default_factory=list[Exception])

    async def has(self, cid: str) -> bool:
        self.heard.append(cid)
        return cid in self.given

    async def announce(self, cid: str, car: Callable[[], AsyncGenerator[bytes, None]]) -> None:
        self.heard.append(cid)
        if self.failures:
            raise self.failures.pop(0)
        self.given[cid] = b"".join([piece async for piece in car()])

    async def withdraw(self, cid: str) -> None:
        self.heard.append(cid)
        self.given.pop(cid, None)

    async def addresses(self) -> Sequence[str]:
        return ()


@dataclass
class AnnouncementEnv:
    env: StorageEnv
    db: Database
    queue: work.OperationWorker
    files: FileService
    announcer: FakeAnnouncer

    async def keep(
        self,
        data: bytes,
        network: ContentNetwork = ContentNetwork.PUBLIC,
        *,
        other: bool = False,
        profile: ImportProfile = V1,
    ) -> File:
        owner = self.env.other_id if other else self.env.tenant_id
        async with self.env.content.receive(profile) as pack:
            await pack.write(data)
            tree = await pack.end_file()
            arrival = NewFile(owner, network, str(tree.cid), tree.size, "text/plain", FileMetadata("n"))
            return await pack.commit(lambda connection: self.files.add(connection, arrival, pack.pack_id))

    async def drop(self, file: File) -> None:
        await self.files.delete(file.tenant_id, file.network, file.id)

    async def settled(self, *files: File) -> None:
        """Wait until nothing is left to do for these."""
        async with asyncio.timeout(30):
            for file in files:
                while await self.db.read(
                    lambda connection, file=file: work.is_subject_busy(connection, f"offer/{_v1(file)}")
                ):
                    await asyncio.sleep(0.02)

    async def survey(self) -> None:
        """Look after everything, once more."""
        await self.surveyed()
        await self.db.write(lambda connection: work.add_operation(connection, SURVEY, "again"))
        async with asyncio.timeout(30):
            while await self.db.read(lambda connection: work.is_subject_busy(connection, "again")):
                await asyncio.sleep(0.02)

    async def surveyed(self) -> None:
        """Wait for the first survey: the next one is a day off then."""
        async with asyncio.timeout(30):
            while not await self.db.write(_is_over):
                await asyncio.sleep(0.02)


@asynccontextmanager
async def announcing(db: Database, env: StorageEnv, *failures: Exception) -> AsyncIterator[AnnouncementEnv]:
    queue, files, announcer = (
        work.OperationWorker(db, owner="test"),
        FileService(db),
        FakeAnnouncer(failures=list(failures)),
    )
    await Announcements(db, queue, files, env.reader, announcer).start()
    await queue.start()
    try:
        yield AnnouncementEnv(env, db, queue, files, announcer)
    finally:
        await queue.stop(grace=0.1)


def _v1(file: File) -> str:
    return str(Cid.parse(file.cid).v1())


@pytest.mark.parametrize("profile", [V0, V1], ids=["v0", "v1"])
async def test_public_content_is_given_whole(env: StorageEnv, database: Database, profile: ImportProfile) -> None:
    async with announcing(database, env) as pin_env:
        file = await pin_env.keep(CONTENT, profile=profile)
        await pin_env.settled(file)
        assert list(pin_env.announcer.given) == [_v1(file)]
        async with env.content.receive_car() as copy:
            await copy.write(pin_env.announcer.given[_v1(file)])
            kept = await copy.finish()
        assert (str(kept.cid), kept.size) == (_v1(file), len(CONTENT))


async def test_it_is_withdrawn_with_the_last_file(env: StorageEnv, database: Database) -> None:
    async with announcing(database, env) as pin_env:
        mine, theirs = await pin_env.keep(CONTENT), await pin_env.keep(CONTENT, other=True)
        await pin_env.drop(mine)
        await pin_env.settled(mine)
        assert list(pin_env.announcer.given) == [_v1(theirs)]
        await pin_env.drop(theirs)
        await pin_env.settled(theirs)
        assert pin_env.announcer.given == {}


async def test_private_content_is_never_announced(env: StorageEnv, database: Database) -> None:
    async with announcing(database, env) as pin_env:
        private = await pin_env.keep(CONTENT, ContentNetwork.PRIVATE)
        public = await pin_env.keep(b"public")
        await pin_env.files.change(
            private.tenant_id, ContentNetwork.PRIVATE, private.id, lambda _: FileMetadata("changed")
        )
        await pin_env.settled(private, public)
        await pin_env.survey()
        await pin_env.drop(private)
        await pin_env.settled(private)
        assert set(pin_env.announcer.heard) == {_v1(public)}


async def test_content_private_and_public_is_given_for_the_public_file(env: StorageEnv, database: Database) -> None:
    async with announcing(database, env) as pin_env:
        private, public = await pin_env.keep(CONTENT, ContentNetwork.PRIVATE), await pin_env.keep(CONTENT, other=True)
        await pin_env.settled(public)
        assert list(pin_env.announcer.given) == [_v1(public)]
        await pin_env.drop(public)
        await pin_env.settled(public)
        assert pin_env.announcer.given == {}
        assert await env.reader.stat(env.scope, Cid.parse(private.cid))


async def test_an_operation_alone_gives_nothing_private_away(env: StorageEnv, database: Database) -> None:
    async with announcing(database, env) as pin_env:
        private = await pin_env.keep(CONTENT, ContentNetwork.PRIVATE)
        pin_env.announcer.given[_v1(private)] = b"as if somebody had"
        await database.write(
            lambda connection: work.add_operation(connection, RECONCILE, f"offer/{private.cid}", {"cid": private.cid})
        )
        await pin_env.settled(private)
        assert pin_env.announcer.given == {}


async def test_file_deleted_before_its_turn_is_not_given(env: StorageEnv, database: Database) -> None:
    queue, files = work.OperationWorker(database, owner="before"), FileService(database)
    Announcements(database, queue, files, env.reader, FakeAnnouncer())
    before = AnnouncementEnv(env, database, queue, files, FakeAnnouncer())
    file = await before.keep(CONTENT)
    await before.drop(file)
    async with announcing(database, env) as later:
        await later.settled(file)
        assert later.announcer.given == {}
        assert later.announcer.heard == [file.cid] * 2


async def test_it_is_tried_until_the_network_can_be_reached(env: StorageEnv, database: Database) -> None:
    async with announcing(database, env, SourceFailed()) as pin_env:
        file = await pin_env.keep(CONTENT)
        await pin_env.settled(file)
        assert list(pin_env.announcer.given) == [file.cid]


async def test_a_refusal_is_believed_in_the_end(
    env: StorageEnv, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(announcements, "_REFUSALS", 1)
    async with announcing(database, env, *[NetworkRefused("too large") for _ in range(3)]) as pin_env:
        await pin_env.surveyed()  # else it may find the file too, and ask once more
        file = await pin_env.keep(CONTENT)
        await pin_env.settled(file)
        assert (pin_env.announcer.given, len(pin_env.announcer.failures)) == ({}, 1)
        pin_env.announcer.failures.clear()
        await pin_env.survey()
        await pin_env.settled(file)
        assert list(pin_env.announcer.given) == [file.cid]


async def test_files_public_before_the_network_are_announced(env: StorageEnv, database: Database) -> None:
    files = FileService(database)
    before = AnnouncementEnv(env, database, work.OperationWorker(database, owner="none"), files, FakeAnnouncer())
    old = [await before.keep(bytes((number,))) for number in range(3)]
    await before.keep(b"private", ContentNetwork.PRIVATE)
    async with announcing(database, env) as now:
        now.announcer.given[old[0].cid] = b"given already"
        await now.surveyed()
        await now.settled(*old)
        assert now.announcer.given.keys() == {file.cid for file in old}
        assert now.announcer.given[old[0].cid] == b"given already"


async def test_many_at_once_are_all_given(env: StorageEnv, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcements, "_PAUSE", announcements._PAUSE / 100)
    async with announcing(database, env) as pin_env:
        files = [await pin_env.keep(bytes((number,))) for number in range(12)]
        await pin_env.settled(*files)
        assert pin_env.announcer.given.keys() == {file.cid for file in files}


def _is_over(connection: Connection) -> bool:
    return any(one.run_after > clock.utc_now() for one in work.list_waiting_operations(connection, SURVEY, "offers"))
