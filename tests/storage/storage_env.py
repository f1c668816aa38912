"""Content over a real database and a folder of the test."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from roost.core.db import Database
from roost.drivers.blob.folder_store import FolderStore
from roost.identity import tenants
from roost.storage.content import service
from roost.storage.content.model import ContentNetwork, ContentScope, PackReference
from roost.storage.content.reader import ContentReader
from roost.storage.content.service import ContentService
from roost.storage.content.unixfs.directory import DirectoryEntry
from roost.storage.content.unixfs.importer import DagTree
from roost.storage.content.unixfs.profile import V1, ImportProfile
from roost.storage.files.model import File, FileMetadata
from roost.storage.files.service import FileService, NewFile

CONTENT = hashlib.shake_128(b"roost").digest(5_000_001)


@dataclass
class StorageEnv:
    db: Database
    folder: Path
    content: ContentService
    tenant_id: str
    other_id: str

    @property
    def reader(self) -> ContentReader:
        return self.content.reader

    @property
    def scope(self) -> ContentScope:
        return ContentScope(ContentNetwork.PRIVATE, self.tenant_id)

    def blob(self, pack_id: str) -> Path:
        return self.folder / "blobs" / pack_id[:2] / pack_id

    def damage(self, pack_id: str, at: int) -> None:
        """Flip one bit of the stored pack."""
        blob = self.blob(pack_id)
        data = bytearray(blob.read_bytes())
        data[at] ^= 1
        blob.chmod(0o600)
        blob.write_bytes(data)

    async def keep(
        self,
        *files: bytes,
        profile: ImportProfile = V1,
        network: ContentNetwork = ContentNetwork.PRIVATE,
        holder: str = "file/1",
    ) -> tuple[str, list[DagTree]]:
        """Store a pack with these files; return it and the files."""
        async with self.content.receive(profile) as pack:
            trees: list[DagTree] = []
            for data in files:
                for at in range(0, len(data), 65_536):
                    await pack.write(data[at : at + 65_536])
                trees.append(await pack.end_file())
            hold = PackReference(pack.pack_id, holder, self.tenant_id, network)
            await pack.commit(lambda connection: service.hold_pack(connection, hold))
        return pack.pack_id, trees

    async def file(
        self,
        data: bytes,
        note: FileMetadata | None = None,
        *,
        network: ContentNetwork = ContentNetwork.PRIVATE,
        profile: ImportProfile = V1,
        tenant_id: str | None = None,
        files: FileService | None = None,
    ) -> File:
        """Add a file with that content, without an upload, for the tenant unless another is named."""
        keeper = files or FileService(self.db)
        async with self.content.receive(profile) as pack:
            await pack.write(data)
            tree = await pack.end_file()
            owner = tenant_id or self.tenant_id
            arrival = NewFile(owner, network, str(tree.cid), tree.size, "text/plain", note or FileMetadata("n"))
            return await pack.commit(lambda connection: keeper.add(connection, arrival, pack.pack_id))


def open_storage_env(db: Database, folder: Path) -> StorageEnv:
    mine, theirs = (
        db.run(lambda connection, name=name: tenants.ensure_tenant(connection, name).id) for name in ("a", "b")
    )
    return StorageEnv(db, folder, ContentService(db, FolderStore(folder / "blobs")), mine, theirs)


def entry(name: str, tree: DagTree) -> DirectoryEntry:
    return DirectoryEntry(name, tree.cid, tree.size, tree.tsize)
