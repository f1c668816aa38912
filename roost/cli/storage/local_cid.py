"""Local computation of the CID of a file or folder, by the same code that servers run."""

from collections.abc import Callable, Mapping, Sequence

from roost.cli.storage.upload_form import LocalFile, read_content
from roost.storage.content.unixfs.directory import DirectoryEntry, build_folder
from roost.storage.content.unixfs.importer import DagTree, UnixfsImporter
from roost.storage.content.unixfs.profile import ImportProfile

_FolderNode = dict[str, "DagTree | _FolderNode"]


def import_files(files: Sequence[LocalFile], profile: ImportProfile, advance: Callable[[int], None]) -> DagTree:
    """Import the file, or the folder that contains all files. advance: called with the bytes of each chunk."""
    (only,) = nest_trees({file.name: _import_file(file, profile, advance) for file in files}).values()
    return build_tree(only, profile)


def nest_trees(trees: Mapping[str, DagTree]) -> _FolderNode:
    """Arrange trees in folders, by their paths."""
    top: _FolderNode = {}
    for path, tree in trees.items():
        *folders, name = path.split("/")
        parent = top
        for segment in folders:
            child = parent.setdefault(segment, {})
            assert isinstance(child, dict)  # a file system has no name twice
            parent = child
        parent[name] = tree
    return top


def _import_file(file: LocalFile, profile: ImportProfile, advance: Callable[[int], None]) -> DagTree:
    importer = UnixfsImporter(profile)
    for chunk in read_content(file):
        importer.update(chunk)
        advance(len(chunk))
    return importer.finish()


def build_tree(node: "DagTree | _FolderNode", profile: ImportProfile) -> DagTree:
    """Build the folders of a tree."""
    if isinstance(node, DagTree):
        return node
    children = {name: build_tree(child, profile) for name, child in node.items()}
    return build_folder(
        profile, (DirectoryEntry(name, tree.cid, tree.size, tree.tsize) for name, tree in children.items())
    )
