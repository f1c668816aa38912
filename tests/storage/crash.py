"""Receive, commit, release and sweep until killed, repeatedly, and check the result.

`python -m tests.storage.crash FOLDER ROUNDS SEED [BUCKET]`. It forks before it has threads, so a round is short.
"""

import asyncio
import hashlib
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path

from roost.core.db import Connection, Database
from roost.drivers.blob.folder_store import FolderStore
from roost.drivers.blob.object_store import ObjectStore
from roost.identity import tenants
from roost.migrations import upgrade_database
from roost.storage.content import service, store
from roost.storage.content.errors import ContentNotFound
from roost.storage.content.model import ContentNetwork, ContentScope, PackReference
from roost.storage.content.scrub import ContentScrubber
from roost.storage.content.service import ContentService
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.profile import PROFILES

NOW = timedelta(0)
LOOK_EVERY = 3


class CrashEnv:
    def __init__(self, folder: Path, bucket: str | None) -> None:
        self.db = Database(f"sqlite:///{folder / 'roost.db'}")
        self.blobs = ObjectStore(bucket) if bucket else FolderStore(folder / "blobs")
        self.sizes = [0, 10, 300_000, 9_000_000 if bucket else 900_000]  # a bucket gets the largest in parts
        self.content = ContentService(self.db, self.blobs)
        self.folder = folder
        self.tenant_id = self.db.run(lambda connection: tenants.ensure_tenant(connection, "a").id)


def content_of(holder: str, size: int) -> bytes:
    return hashlib.shake_128(holder.encode()).digest(size)


async def work(place: CrashEnv, say: Callable[[str], None], chance: random.Random, mark: int) -> None:
    """Report each finished step: `+` stored, `-` may be deleted, `x` deleted."""
    mine: list[str] = []
    for number in range(10_000):
        holder, size = f"file/{mark}-{number}", chance.choice(place.sizes)
        async with place.content.receive(chance.choice(list(PROFILES.values()))) as pack:
            await pack.write(content_of(holder, size))
            tree = await pack.end_file()
            hold = PackReference(pack.pack_id, holder, place.tenant_id, ContentNetwork.PRIVATE)
            await pack.commit(lambda connection, hold=hold: service.hold_pack(connection, hold))
        say(f"+ {holder} {size} {tree.cid}")
        mine.append(holder)
        if chance.random() < 0.4:
            gone = mine.pop(chance.randrange(len(mine)))
            say(f"- {gone}")
            await place.db.write(lambda connection, gone=gone: service.release_packs(connection, gone))
            say(f"x {gone}")
        if chance.random() < 0.3:
            await place.content.sweep(NOW)


async def check_content(place: CrashEnv, said: Iterable[str]) -> None:
    """Check that nothing is lost, unfinished, or left over."""
    kept: dict[str, tuple[int, Cid]] = {}
    gone: list[Cid] = []
    for what, holder, *more in (line.split() for line in said):
        if what == "+":
            kept[holder] = (int(more[0]), Cid.parse(more[1]))
        elif what == "-":
            size, cid = kept.pop(holder)
        elif size:  # empty content has one CID for all holders, and one whose "+" or "x" was cut off may keep it
            gone.append(cid)
    reader, scope = place.content.reader, ContentScope(ContentNetwork.PRIVATE, place.tenant_id)
    for holder, (size, cid) in kept.items():
        pieces = [piece async for piece in reader.stream_file(scope, await reader.stat(scope, cid))]
        assert b"".join(pieces) == content_of(holder, size), f"{holder} is lost"
    for cid in set(gone) - {cid for _, cid in kept.values()}:
        try:
            await reader.find_block(scope, cid)
        except ContentNotFound:
            continue
        raise AssertionError("what was let go is there")
    await place.content.sweep(NOW)
    scrub = ContentScrubber(place.db, reader, 1 << 40, 1)
    await scrub.scrub_due()
    assert scrub.damaged_packs == 0, "half a pack is there"
    keys = {blob.key async for blob in place.blobs.list()}
    assert keys == await place.db.read(everything), "objects leak"
    assert not list(place.folder.glob("blobs/new/*")), "drafts leak"


def everything(connection: Connection) -> set[str]:
    return set(connection.execute(store.packs.select().with_only_columns(store.packs.c.id)).scalars())


def forked(run: Callable[[], object]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        run()
        os._exit(0)
    except BaseException as error:  # noqa: BLE001 - a fork must not go on as its parent
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
        os._exit(1)


def run_round(folder: Path, bucket: str | None, number: int, chance: random.Random, said: list[str]) -> None:
    ours, theirs = os.pipe()
    seed = chance.random()

    def run() -> None:
        def say(line: str) -> None:
            os.write(theirs, line.encode() + b"\n")

        place = CrashEnv(folder, bucket)
        say("ready")
        asyncio.run(work(place, say, random.Random(seed), number))

    child = forked(run)
    os.close(theirs)
    with os.fdopen(ours) as lines:
        assert lines.readline() == "ready\n"
        said += [lines.readline().rstrip("\n") for _ in range(chance.randrange(5))]
        time.sleep(chance.random() * 0.03)  # a random time for the kill
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        said += lines.read().splitlines()
    if number % LOOK_EVERY:
        return
    _, status = os.waitpid(forked(lambda: asyncio.run(check_content(CrashEnv(folder, bucket), said))), 0)
    assert status == 0, f"round {number}"


def main(folder: Path, rounds: int, seed: int, bucket: str | None = None) -> None:
    assert os.waitpid(forked(lambda: upgrade_database(Database(f"sqlite:///{folder / 'roost.db'}"))), 0)[1] == 0
    chance = random.Random(seed)
    said: list[str] = []
    for number in range(rounds):
        run_round(folder, bucket, number, chance, said)
    print(sum(line.startswith("+") for line in said), sum(line.startswith("x") for line in said))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
