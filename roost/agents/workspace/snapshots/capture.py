"""Read a tree of an agent into a new pack: a UnixFS directory over what changed since the last time and older packs.

The container lists its files; only those whose times, inode or size changed are read, and every byte is hashed here.
The others are read if secrets are known that they were not searched for, and only searched.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import cast

from sqlalchemy import Connection

from roost.agents.workspace.snapshots.diff import TreeDiff
from roost.agents.workspace.snapshots.index import (
    EntryKind,
    IndexedEntry,
    Stamp,
    WorkspaceIndex,
    compare_indexes,
    encode_index,
    settled_stamp,
)
from roost.agents.workspace.snapshots.model import FILE_MODE, FOLDER_MODE, SkippedFile, SkipReason
from roost.agents.workspace.snapshots.secret_search import SecretSearch
from roost.agents.workspace.snapshots.state_tree import StateTree
from roost.storage.content.model import ContentScope
from roost.storage.content.reader import ContentReader
from roost.storage.content.receiver import ContentReceiver
from roost.storage.content.unixfs.directory import DirectoryEntry
from roost.storage.content.unixfs.entry_name import encode_entry_name
from roost.storage.content.unixfs.errors import InvalidEntryName
from roost.storage.content.unixfs.importer import DagTree
from roost.warden_client.errors import WardenFileNotFound, WardenNotAFile
from roost.warden_client.tree import FileReading, ScanEntry, WardenTree

MAX_PACKS, _PACKS_AFTER_MERGE = 64, 16
"""Packs of one snapshot; with more, the smallest are merged into the new one."""
_PERMISSIONS = 0o777


class TreeCapture:
    """One reading of a tree, the workspace or the state of an agent, into a pack: `run` it once, then `commit`.

    base: the index of the reading before. is_base_searched: whether its files hold none of the secrets. index, skipped,
    packs: what the tree has and leaves out, and the packs with its blocks. difference: that of its files and links from
    the reading before. changed_index: the encoded index, None if it is as before.
    """

    def __init__(
        self, receiver: ContentReceiver, base: WorkspaceIndex, search: SecretSearch, *, is_base_searched: bool
    ) -> None:
        self.base = base
        self.index: dict[str, IndexedEntry] = {}
        self.skipped: list[SkippedFile] = []
        self.packs: Sequence[str] = ()
        self.difference = TreeDiff((), (), ())
        self.changed_index: bytes | None = None
        self._receiver = receiver
        self._search = search
        self._is_base_searched = is_base_searched
        self._folders: dict[str, list[str]] = {"": []}
        self._folder_modes: dict[str, int] = {"": FOLDER_MODE}
        self._changed: list[str] = []
        self._unsearched: list[str] = []

    @property
    def cid(self) -> str:
        return str(self.index[""].parse_cid())

    def list_files(self) -> Sequence[IndexedEntry]:
        """Return the files and links."""
        return [entry for entry in self.index.values() if entry.kind != "folder"]

    async def run(self, tree: WardenTree | StateTree, reader: ContentReader, scope: ContentScope) -> None:
        """Read what changed. Raises the errors of the warden, BlobStoreFailed and ContentDamaged."""
        async with aclosing(tree.scan()) as batches:
            async for batch in batches:
                for entry in batch:
                    self._add_entry(entry)
        async with aclosing(tree.read_files(self._unsearched)) as batches:
            await self._search_files(batches)
        async with aclosing(tree.read_files(self._changed)) as batches:
            await self._read_files(batches)
        await self._merge_packs(reader, scope)
        self.difference = compare_indexes(self.base, self.index)
        await asyncio.to_thread(self._build_folders, self.difference)
        self.packs = sorted({entry.pack for entry in self.index.values()})

    async def commit(self) -> None:
        """Make the new pack an object of the blob store if the tree uses it. Raises BlobStoreFailed."""
        if self.index != self.base:
            self.changed_index = await asyncio.to_thread(encode_index, self.index)
        if self._receiver.pack_id in self.packs:
            await self._receiver.commit_blob()

    def publish_pack(self, connection: Connection) -> None:
        """Make the committed pack content, in the transaction that adds a holder."""
        if self._receiver.pack_id in self.packs:
            self._receiver.publish_pack(connection)

    def _add_entry(self, entry: ScanEntry) -> None:
        """Keep an entry that is as it was, and remember a file to read."""
        parent, _, name = entry.path.rpartition("/")
        if parent not in self._folders:  # a folder that is left out
            return
        if reason := _skip_reason(entry, name):
            self.skipped.append(SkippedFile(entry.path, reason))
            return
        self._folders[parent].append(entry.path)
        before = self.base.get(entry.path)
        if entry.kind == "folder":
            self._folders[entry.path] = []
            self._folder_modes[entry.path] = entry.mode & _PERMISSIONS
        elif entry.kind == "link":
            if before is None or before.kind != "link" or before.target != entry.target:
                before = self._new_entry("link", self._receiver.add_link(entry.target), target=entry.target)
            self.index[entry.path] = before
        elif before and before.is_current(entry.stamp, entry.size, entry.mode & _PERMISSIONS):
            if self._is_base_searched:
                self.index[entry.path] = before
            else:
                self._unsearched.append(entry.path)
        else:
            self._changed.append(entry.path)

    async def _search_files(self, batches: AsyncIterator[Sequence[FileReading]]) -> None:
        """Keep the files that hold no secret, and remember those to read that changed meanwhile."""
        async for batch in batches:
            found = await asyncio.to_thread(self._search_small_files, batch)
            if isinstance(batch[-1].content, AsyncIterator):
                found[batch[-1].path] = await self._search_large_file(batch[-1].content)
            for file in batch:
                before, mode = self.base[file.path], file.mode & _PERMISSIONS
                if file.error or file.is_changed or not before.is_current(file.stamp, file.size, mode):
                    self._changed.append(file.path)
                elif secret := found[file.path]:
                    self.skipped.append(SkippedFile(file.path, SkipReason.HOLDS_SECRET, secret))
                else:
                    self.index[file.path] = before

    def _search_small_files(self, batch: Sequence[FileReading]) -> dict[str, str | None]:
        """Return the secret of each file that has one, None for the others."""
        has_secret = self._find_in_batch(batch)
        return {
            file.path: self._find_secret(file.content) if has_secret else None
            for file in batch
            if isinstance(file.content, memoryview)
        }

    async def _search_large_file(self, content: AsyncIterator[bytes]) -> str | None:
        self._search.reset()
        async for chunk in content:
            if secret := self._search.feed(chunk):
                return secret
        return None

    async def _read_files(self, batches: AsyncIterator[Sequence[FileReading]]) -> None:
        """Add files to the pack: those of a batch in a thread, while the next batch is received."""
        adding: asyncio.Task[None] | None = None
        try:
            async for batch in batches:
                if adding:
                    await adding
                adding = asyncio.create_task(self._add_batch(batch))
                if isinstance(batch[-1].content, AsyncIterator):
                    await adding
                    await self._add_large_file(batch[-1], batch[-1].content)
            if adding:
                await adding
        finally:
            if adding:
                adding.cancel()
                await asyncio.gather(adding, return_exceptions=True)

    async def _add_batch(self, batch: Sequence[FileReading]) -> None:
        await asyncio.to_thread(self._add_small_files, batch)
        await self._receiver.write_small_files()

    def _add_small_files(self, batch: Sequence[FileReading]) -> None:
        has_secret = self._find_in_batch(batch)
        for file in batch:
            if isinstance(file.error, WardenFileNotFound | WardenNotAFile):  # those changed since the scan
                continue
            if file.error is not None:
                self.skipped.append(SkippedFile(file.path, SkipReason.UNREADABLE))
            elif isinstance(file.content, memoryview):
                if has_secret and (secret := self._find_secret(file.content)):
                    self.skipped.append(SkippedFile(file.path, SkipReason.HOLDS_SECRET, secret))
                else:
                    mode = file.mode & _PERMISSIONS
                    self._index_file(file, self._receiver.add_small_file(file.content, _stored_mode(mode)))

    def _find_in_batch(self, batch: Sequence[FileReading]) -> str | None:
        """Search the buffers of all small files, which is faster; a value may also begin in one and end in the next."""
        contents = (file.content for file in batch if isinstance(file.content, memoryview))
        buffers = {id(content.obj): cast("bytes", content.obj) for content in contents}
        return next(filter(None, map(self._find_secret, buffers.values())), None)

    def _find_secret(self, content: bytes | memoryview) -> str | None:
        self._search.reset()
        return self._search.feed(content)

    async def _add_large_file(self, file: FileReading, content: AsyncIterator[bytes]) -> None:
        self._search.reset()
        async for chunk in content:
            if secret := self._search.feed(chunk):
                await self._receiver.discard_file()
                self.skipped.append(SkippedFile(file.path, SkipReason.HOLDS_SECRET, secret))
                return
            await self._receiver.write(chunk)
        self._index_file(file, await self._receiver.end_file(_stored_mode(file.mode & _PERMISSIONS)))

    def _index_file(self, file: FileReading, tree: DagTree) -> None:
        mode = file.mode & _PERMISSIONS
        stamp = None if file.is_changed else settled_stamp(file.stamp)
        before = self.base.get(file.path)
        if before and before.kind == "file" and (before.cid, before.mode) == (bytes(tree.cid), mode):
            self.index[file.path] = before._replace(stamp=stamp)
        else:
            self.index[file.path] = self._new_entry("file", tree, mode=mode, stamp=stamp)

    async def _merge_packs(self, reader: ContentReader, scope: ContentScope) -> None:
        """Copy the files of the smallest packs into the new one if there are too many packs."""
        sizes = Counter[str]()
        for entry in self.index.values():
            sizes[entry.pack] += entry.size
        if len(sizes) < MAX_PACKS:
            return
        small = {pack for pack, _ in sizes.most_common()[_PACKS_AFTER_MERGE:]} - {self._receiver.pack_id}
        for path, entry in self.index.items():
            if entry.pack not in small:
                continue
            if entry.kind == "link":
                tree = self._receiver.add_link(entry.target)
            else:
                async for piece in reader.stream_file(scope, await reader.stat(scope, entry.parse_cid())):
                    await self._receiver.write(piece)
                tree = await self._receiver.end_file(_stored_mode(entry.mode))
            self.index[path] = entry._replace(pack=self._receiver.pack_id, cid=bytes(tree.cid))
        self.base = {path: entry for path, entry in self.base.items() if entry.kind != "folder"}

    def _build_folders(self, difference: TreeDiff) -> None:
        """Add the folders whose entries changed, each after those inside."""
        changed = {_parent(path) for path in (*difference.added, *difference.removed, *difference.changed)}
        changed.update(map(_parent, self.base.keys() - self.index.keys() - self._folders.keys()))
        for folder, paths in reversed(self._folders.items()):
            known, mode = self.base.get(folder), self._folder_modes[folder]
            if known and known.kind == "folder" and known.mode == mode and folder not in changed:
                self.index[folder] = known
                continue
            entries = (
                DirectoryEntry(encode_entry_name(path.rpartition("/")[2]), entry.parse_cid(), entry.size, entry.tsize)
                for path in paths
                if (entry := self.index.get(path))
            )
            tree = self._receiver.add_folder(entries, None if mode == FOLDER_MODE else mode)
            self.index[folder] = self._new_entry("folder", tree, mode=mode)
            changed.add(_parent(folder))

    def _new_entry(
        self, kind: EntryKind, tree: DagTree, *, mode: int = 0, stamp: Stamp | None = None, target: str = ""
    ) -> IndexedEntry:
        pack = self._receiver.pack_id
        return IndexedEntry(kind, bytes(tree.cid), tree.size, tree.tsize, pack, mode, stamp, target)


def _stored_mode(mode: int) -> int | None:
    """Return the mode that the tree of a file stores."""
    return None if mode == FILE_MODE else mode


def _skip_reason(entry: ScanEntry, name: str) -> SkipReason | None:
    if entry.error:
        return SkipReason.UNREADABLE
    if entry.kind == "other":
        return SkipReason.SPECIAL_FILE
    if not name.isascii():
        try:
            encode_entry_name(name)
        except InvalidEntryName:
            return SkipReason.NAME
    return None


def _parent(path: str) -> str:
    return path.rpartition("/")[0]
