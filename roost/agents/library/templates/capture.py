"""Store the files of a template's workspace as a UnixFS directory in a new pack."""

from collections.abc import Mapping
from contextlib import aclosing

from roost.drivers.git.contract import EntryKind, GitEntry
from roost.drivers.git.remote_contract import FetchedCommit
from roost.storage.content.receiver import ContentReceiver
from roost.storage.content.unixfs.directory import DirectoryEntry
from roost.storage.content.unixfs.entry_name import encode_entry_name
from roost.storage.content.unixfs.importer import DagTree

_EXECUTABLE = 0o755  # ordinary files store no permissions, so that they have the CIDs of uploads


async def store_workspace(commit: FetchedCommit, entries: Mapping[str, GitEntry], receiver: ContentReceiver) -> DagTree:
    """Return the directory of checked files and links, by their paths.

    Raises InvalidEntryName, MalformedContent, BlobStoreFailed and the errors of `FetchedCommit.read_blobs`.
    """
    folders: dict[str, list[DirectoryEntry]] = {"": []}
    if entries:
        async with aclosing(commit.read_blobs(list(entries.values()))) as blobs:
            paths = iter(entries.items())
            async for blob in blobs:
                path, entry = next(paths)
                if entry.kind is EntryKind.LINK:
                    tree = receiver.add_link(b"".join([chunk async for chunk in blob.content]))
                else:
                    async for chunk in blob.content:
                        await receiver.write(chunk)
                    tree = await receiver.end_file(_EXECUTABLE if entry.kind is EntryKind.EXECUTABLE else None)
                _add_entry(folders, path, tree)
    for folder in sorted(folders, key=lambda path: path.count("/"), reverse=True):
        if folder:
            _add_entry(folders, folder, receiver.add_folder(folders[folder]))
    return receiver.add_folder(folders[""])


def _add_entry(folders: dict[str, list[DirectoryEntry]], path: str, tree: DagTree) -> None:
    """Add a tree to the folder that it is in, and make known the folders around that."""
    folder, _, name = path.rpartition("/")
    entry = DirectoryEntry(encode_entry_name(name), tree.cid, tree.size, tree.tsize)
    folders.setdefault(folder, []).append(entry)
    while folder:
        folder = folder.rpartition("/")[0]
        folders.setdefault(folder, [])
