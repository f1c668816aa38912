"""The CID that a file or folder of this machine has under a profile: computed here, by the code that servers run."""

from collections.abc import Callable, Sequence

from roost.cli.form import Found, content
from roost.storage.unixfs.folder import Entry, folder
from roost.storage.unixfs.importer import Importer, Tree
from roost.storage.unixfs.profile import Profile

_Folder = dict[str, "Tree | _Folder"]


def root(files: Sequence[Found], profile: Profile, read: Callable[[int], None]) -> Tree:
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


def _file(file: Found, profile: Profile, read: Callable[[int], None]) -> Tree:
    importer = Importer(profile)
    for piece in content(file):
        importer.update(piece)
        read(len(piece))
    return importer.finish()


def _tree(found: "Tree | _Folder", profile: Profile) -> Tree:
    if isinstance(found, Tree):
        return found
    inside = {name: _tree(below, profile) for name, below in found.items()}
    return folder(profile, (Entry(name, tree.cid, tree.size, tree.tsize) for name, tree in inside.items()))
