"""Content over a real database and files of a test's own."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from roost.core.db import Database
from roost.drivers.blob.folder import FolderStore
from roost.identity import tenants
from roost.storage.content import service
from roost.storage.content.model import Hold, Network, Scope
from roost.storage.content.reader import Reader
from roost.storage.content.service import Content
from roost.storage.files.model import File, Note
from roost.storage.files.service import Arrival, Files
from roost.storage.unixfs.folder import Entry
from roost.storage.unixfs.importer import Tree
from roost.storage.unixfs.profile import V1, Profile

CONTENT = hashlib.shake_128(b"roost").digest(5_000_001)


@dataclass
class House:
    db: Database
    folder: Path
    content: Content
    tenant_id: str
    other_id: str

    @property
    def reader(self) -> Reader:
        return self.content.reader

    @property
    def scope(self) -> Scope:
        return Scope(Network.PRIVATE, self.tenant_id)

    def blob(self, pack_id: str) -> Path:
        return self.folder / "blobs" / pack_id[:2] / pack_id

    def damage(self, pack_id: str, at: int) -> None:
        """One bit of the stored pack is another from now on."""
        blob = self.blob(pack_id)
        data = bytearray(blob.read_bytes())
        data[at] ^= 1
        blob.chmod(0o600)
        blob.write_bytes(data)

    async def keep(
        self, *files: bytes, profile: Profile = V1, network: Network = Network.PRIVATE, holder: str = "file/1"
    ) -> tuple[str, list[Tree]]:
        """The pack of these files, held, and the files."""
        async with self.content.receive(profile) as pack:
            trees: list[Tree] = []
            for data in files:
                for at in range(0, len(data), 65_536):
                    await pack.write(data[at : at + 65_536])
                trees.append(await pack.end_file())
            hold = Hold(pack.pack_id, holder, self.tenant_id, network)
            await pack.commit(lambda connection: service.hold(connection, hold))
        return pack.pack_id, trees

    async def file(
        self,
        data: bytes,
        note: Note | None = None,
        *,
        network: Network = Network.PRIVATE,
        profile: Profile = V1,
        tenant_id: str | None = None,
        files: Files | None = None,
    ) -> File:
        """A file with that content, put there without an upload; the tenant's, unless another is named."""
        keeper = files or Files(self.db)
        async with self.content.receive(profile) as pack:
            await pack.write(data)
            tree = await pack.end_file()
            owner = tenant_id or self.tenant_id
            arrival = Arrival(owner, network, str(tree.cid), tree.size, "text/plain", note or Note("n"))
            return await pack.commit(lambda connection: keeper.add(connection, arrival, pack.pack_id))


def house(db: Database, folder: Path) -> House:
    mine, theirs = (db.run(lambda connection, name=name: tenants.ensure(connection, name).id) for name in ("a", "b"))
    return House(db, folder, Content(db, FolderStore(folder / "blobs")), mine, theirs)


def entry(name: str, tree: Tree) -> Entry:
    return Entry(name, tree.cid, tree.size, tree.tsize)
