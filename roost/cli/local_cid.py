"""The CID that a file or folder of this machine has under a profile: computed here, by the code that servers run."""

from collections.abc import Callable, Sequence

from roost.cli.upload_form import LocalFile, content
from roost.storage.unixfs.directory import DirectoryEntry, folder
from roost.storage.unixfs.importer import DagTree, UnixfsImporter
from roost.storage.unixfs.profile import ImportProfile

_Folder = dict[str, "DagTree | _Folder"]


def root(files: Sequence[LocalFile], profile: ImportProfile, read: Callable[[int], None]) -> DagTree:
    """The file, or the folder that all files are in. read: is told of bytes that were read."""
    top: _Folder = {}
    for file in files:
        *folders, name = file.name.split("/")
        at = top
        for below in folders:
            inside = at.setdefault(below, {})
            assert isinstance(inside, dict)  # a file system has no name twice
            at = inside
        at[name] = _file(file, profile, read)
    (only,) = top.values()
    return _tree(only, profile)


def _file(file: LocalFile, profile: ImportProfile, read: Callable[[int], None]) -> DagTree:
    importer = UnixfsImporter(profile)
    for piece in content(file):
        importer.update(piece)
        read(len(piece))
    return importer.finish()


def _tree(found: "DagTree | _Folder", profile: ImportProfile) -> DagTree:
    if isinstance(found, DagTree):
        return found
    inside = {name: _tree(below, profile) for name, below in found.items()}
    return folder(profile, (DirectoryEntry(name, tree.cid, tree.size, tree.tsize) for name, tree in inside.items()))
