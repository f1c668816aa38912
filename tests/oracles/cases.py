"""Files and folders at every boundary of the profiles, and the CIDs that we give them."""

import hashlib
from collections.abc import Iterator, Mapping

from roost.storage.content.unixfs import dagpb
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.dagpb import PBLink, UnixfsData, UnixfsKind
from roost.storage.content.unixfs.directory import DirectoryEntry, build_folder
from roost.storage.content.unixfs.importer import DagTree, UnixfsImporter
from roost.storage.content.unixfs.profile import SHARD_ABOVE, UNIXFS_V1_2025, V0, V1, ImportProfile

PATTERN = hashlib.shake_128(b"oracle").digest(1_000_003)
CHUNK = 256 * 1024
SIZES = [
    *(0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 4 * CHUNK - 1, 4 * CHUNK, 4 * CHUNK + 1),
    *(174 * CHUNK - 1, 174 * CHUNK, 174 * CHUNK + 1),
]
FULL_AND_ONE = 1024 * 4 * CHUNK + 1
"""The first size of the newest profile with a second level of nodes."""
_NAME = 200
FolderNames = Mapping[str, int]


def content(size: int) -> Iterator[bytes]:
    """The pattern again and again."""
    for left in range(size, 0, -len(PATTERN)):
        yield PATTERN[:left]


def file(profile: ImportProfile, size: int) -> DagTree:
    importer = UnixfsImporter(profile)
    for piece in content(size):
        importer.update(piece)
    return importer.finish()


def entries(profile: ImportProfile, names: FolderNames) -> list[DirectoryEntry]:
    files = {size: file(profile, size) for size in set(names.values())}
    return [DirectoryEntry(name, files[size].cid, size, files[size].tsize) for name, size in names.items()]


def folder_cid(profile: ImportProfile, names: FolderNames) -> Cid:
    return build_folder(profile, entries(profile, names)).cid


def names_around_the_threshold(profile: ImportProfile, by: int) -> FolderNames:
    """A folder that is `by` bytes larger than the largest one that is not sharded."""
    count = SHARD_ABOVE // _weight(profile, _names(1, 0)) - 1
    longer = SHARD_ABOVE + by - _weight(profile, _names(count, 0))
    names = _names(count, longer)
    assert _weight(profile, names) == SHARD_ABOVE + by
    return names


def _names(count: int, longer: int) -> FolderNames:
    """So many names, `longer` bytes longer together than they have to be."""
    each, rest = divmod(longer, count)
    return {f"{n:05}".ljust(_NAME + each + (n < rest), "n"): n % 3 for n in range(count)}


def _weight(profile: ImportProfile, names: FolderNames) -> int:
    """What decides whether a folder is sharded: the bytes of its block, or of its names and CIDs."""
    found = entries(profile, names)
    if profile.shard_by_block:
        return len(
            dagpb.encode_node([PBLink(one.cid, one.name, one.tsize) for one in found], UnixfsData(UnixfsKind.DIRECTORY))
        )
    return sum(len(one.name) + len(bytes(one.cid)) for one in found)


FOLDERS = [
    (profile, names_around_the_threshold(profile, by)) for profile in (V0, V1, UNIXFS_V1_2025) for by in (-1, 0, 1)
]
