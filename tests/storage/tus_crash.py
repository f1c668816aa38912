"""Upload in parts until killed, repeatedly, and continue from the acknowledged offset.

`python -m tests.storage.tus_crash FOLDER ROUNDS SEED`. It prints how many uploads became files, and how many continued.
"""

import asyncio
import hashlib
import os
import random
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from roost.core import ids
from roost.core.db import Database
from roost.drivers.blob.drafts import DraftStore
from roost.drivers.blob.folder_store import FolderStore
from roost.identity import tenants
from roost.identity.caller import Plan
from roost.migrations import upgrade_database
from roost.storage.content.model import ContentNetwork, ContentScope
from roost.storage.content.service import ContentService
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.profile import PROFILES
from roost.storage.files.service import FileService
from roost.storage.files.tus.model import NewTusUpload
from roost.storage.files.tus.service import TusUploadService
from roost.storage.files.uploads.service import UploadService
from tests.storage.crash import forked

LIMIT = 1 << 30


@dataclass
class AcknowledgedUpload:
    """What the server acknowledged to the client of one upload."""

    file_id: str
    token: str
    size: int
    offset: int = 0
    cid: str | None = None

    @property
    def content(self) -> bytes:
        return hashlib.shake_128(self.file_id.encode()).digest(self.size)


class CrashEnv:
    def __init__(self, folder: Path) -> None:
        self.db = Database(f"sqlite:///{folder / 'roost.db'}")
        blobs = FolderStore(folder / "blobs")
        self.content = ContentService(self.db, blobs)
        self.drafts = folder / "drafts"
        uploads = UploadService(self.db, self.content, FileService(self.db), dict.fromkeys(Plan, LIMIT))
        self.transfers = TusUploadService(self.db, DraftStore(self.drafts, blobs), self.content, uploads, "")
        self.tenant_id = self.db.run(lambda connection: tenants.ensure_tenant(connection, "a").id)


async def check(place: CrashEnv, known: Sequence[AcknowledgedUpload]) -> None:
    """Check that acknowledged bytes are stored: all bytes of a file, the offset of an upload."""
    scope = ContentScope(ContentNetwork.PRIVATE, place.tenant_id)
    for one in known:
        transfer = await place.transfers.find(one.file_id, one.token)
        assert transfer.offset >= one.offset, "an acknowledged part is lost"
        assert transfer.cid or not one.cid, "an acknowledged file is lost"
        if transfer.cid:
            reader = place.content.reader
            found = await reader.stat(scope, Cid.parse(transfer.cid))
            assert b"".join([piece async for piece in reader.stream_file(scope, found)]) == one.content, "other bytes"


async def work(
    place: CrashEnv, say: Callable[[str], None], chance: random.Random, known: Sequence[AcknowledgedUpload]
) -> None:
    for one in [one for one in known if one.cid is None]:
        await continue_upload(place, say, chance, one)
    while True:
        profile = chance.choice(list(PROFILES))
        size = chance.choice([1, 262_144, 1_048_576, 2_500_000])
        opening = NewTusUpload(place.tenant_id, ids.new_id(), size, {"filename": "a", "cid_version": profile})
        transfer, token = await place.transfers.begin(opening)
        say(f"begun {transfer.file_id} {token} {size}")
        await continue_upload(place, say, chance, AcknowledgedUpload(transfer.file_id, token, size))


async def continue_upload(
    place: CrashEnv, say: Callable[[str], None], chance: random.Random, one: AcknowledgedUpload
) -> None:
    transfer = await place.transfers.find(one.file_id, one.token)
    while transfer.cid is None:
        part = one.content[transfer.offset : transfer.offset + chance.choice([1, 70_000, 400_000, 1_100_000])]
        transfer = await place.transfers.append(one.file_id, one.token, transfer.offset, pieces(part))
        say(f"told {one.file_id} {transfer.offset} {transfer.cid or ''}")


async def pieces(part: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(part), 65_536):
        yield part[at : at + 65_536]


def run_round(folder: Path, chance: random.Random, known: dict[str, AcknowledgedUpload]) -> None:
    ours, theirs = os.pipe()
    seed = chance.random()

    def run() -> None:
        def say(line: str) -> None:
            os.write(theirs, line.encode() + b"\n")

        async def live() -> None:
            place = CrashEnv(folder)
            await check(place, list(known.values()))
            say("ready")
            await work(place, say, random.Random(seed), list(known.values()))

        asyncio.run(live())

    child = forked(run)
    os.close(theirs)
    with os.fdopen(ours) as lines:
        assert lines.readline() == "ready\n"
        said = [lines.readline() for _ in range(chance.randrange(6))]
        time.sleep(chance.random() * 0.03)  # a random time for the kill
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        said += lines.readlines()
    for line in said:
        read_reports(known, line.split())


def read_reports(known: dict[str, AcknowledgedUpload], words: Sequence[str]) -> None:
    match words:
        case ["begun", file_id, token, size]:
            known[file_id] = AcknowledgedUpload(file_id, token, int(size))
        case ["told", file_id, offset, *cid]:
            known[file_id].offset = int(offset)
            known[file_id].cid = cid[0] if cid else None
        case _:
            raise AssertionError(words)


async def finish(place: CrashEnv, known: Sequence[AcknowledgedUpload]) -> None:
    """Finish all uploads, and check that no drafts are left."""
    chance = random.Random()
    for one in known:
        await continue_upload(place, lambda _: None, chance, one)
    await check(place, known)
    for one in known:
        await place.transfers.terminate(one.file_id, one.token)


def main(folder: Path, rounds: int, seed: int) -> None:
    assert os.waitpid(forked(lambda: upgrade_database(Database(f"sqlite:///{folder / 'roost.db'}"))), 0)[1] == 0
    chance = random.Random(seed)
    known: dict[str, AcknowledgedUpload] = {}
    resumed = 0
    for _ in range(rounds):
        resumed += any(one.cid is None for one in known.values())
        run_round(folder, chance, known)
    assert os.waitpid(forked(lambda: asyncio.run(finish(CrashEnv(folder), list(known.values())))), 0)[1] == 0
    print(sum(one.cid is not None for one in known.values()), resumed)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
