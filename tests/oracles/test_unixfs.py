"""Our CIDs are those of three other implementations, at every boundary of every profile.

kubo before 0.40, and aleph-cid after it, shard a folder that is exactly as large as the threshold; ipfs/specs
(IPIP-0499) and the importer in JavaScript do not, and neither do we. Those two are not asked about that size.
"""

import json
import subprocess
import sys
from pathlib import Path

import aleph_cid
import pytest

from roost.storage.content.unixfs.directory import DirectoryEntry, build_folder
from roost.storage.content.unixfs.profile import PROFILES, UNIXFS_V1_2025, V0, V1, ImportProfile
from tests.oracles.cases import (
    FOLDERS,
    FULL_AND_ONE,
    PATTERN,
    SIZES,
    FolderNames,
    content,
    file,
    folder_cid,
    names_around_the_threshold,
)
from tests.support import node

HERE = Path(__file__).parent
OLD_AND_PLAIN = pytest.mark.parametrize("profile", [V0, V1], ids=["v0", "v1"])


async def test_of_the_importer_in_javascript(tmp_path: Path) -> None:
    """Pinned in `package.json`; all cases at once, for its start takes longer than most of them."""
    packages = node.installed(HERE)
    (tmp_path / "pattern").write_bytes(PATTERN)
    files = [(profile, size) for profile in PROFILES.values() for size in SIZES] + [(UNIXFS_V1_2025, FULL_AND_ONE)]
    cases = [{"profile": profile.name, "size": size} for profile, size in files]
    cases += [{"profile": profile.name, "names": names} for profile, names in FOLDERS]
    (tmp_path / "cases").write_text(json.dumps({"pattern": str(tmp_path / "pattern"), "cases": cases}))
    said = await node.run(HERE / "importer.mjs", tmp_path / "at", packages, {"CASES": str(tmp_path / "cases")})
    ours = [file(*one).cid for one in files] + [folder_cid(*one) for one in FOLDERS]
    assert list(map(str, ours)) == json.loads(said)


def test_cids_are_those_of_kubo(tmp_path: Path) -> None:
    folders = [names_around_the_threshold(V0, by) for by in (-1, 1)]
    paths = [_write(tmp_path / f"file-{size}", size) for size in SIZES]
    paths += [_write_folder(tmp_path / f"folder-{number}", names) for number, names in enumerate(folders)]
    argv = [sys.executable, "-m", "tests.oracles.kubo", str(tmp_path / "repository"), *map(str, paths)]
    said = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True).stdout.split()
    ours = [file(V0, size).cid for size in SIZES] + [folder_cid(V0, names) for names in folders]
    assert list(map(str, ours)) == said


@OLD_AND_PLAIN
@pytest.mark.parametrize("size", SIZES)
def test_of_another_hasher(profile: ImportProfile, size: int) -> None:
    hasher = aleph_cid.CidHasher.for_ipfs() if profile is V0 else aleph_cid.CidHasher.for_ipfs_v1_raw_leaves()
    for piece in content(size):
        hasher.update(piece)
    assert hasher.finalize() == str(file(profile, size).cid)


@OLD_AND_PLAIN
@pytest.mark.parametrize("by", [-1, 1])
def test_of_another_hasher_of_folders(profile: ImportProfile, by: int, tmp_path: Path) -> None:
    names = names_around_the_threshold(profile, by)
    _write_folder(tmp_path / "folder", names)
    assert aleph_cid.hash_folder(str(tmp_path / "folder"), cid_version=profile.version) == str(
        folder_cid(profile, names)
    )


@OLD_AND_PLAIN
def test_of_folders_in_folders(profile: ImportProfile, tmp_path: Path) -> None:
    inner: FolderNames = {"größe.txt": 262_145, "empty": 0}
    _write_folder(tmp_path / "outer" / "inner", inner)
    _write(tmp_path / "outer" / "zero", 0)
    inside, zero = build_folder(profile, [_entry(profile, *one) for one in inner.items()]), file(profile, 0)
    ours = build_folder(
        profile,
        [
            DirectoryEntry("inner", inside.cid, inside.size, inside.tsize),
            DirectoryEntry("zero", zero.cid, zero.size, zero.tsize),
        ],
    )
    assert aleph_cid.hash_folder(str(tmp_path / "outer"), cid_version=profile.version) == str(ours.cid)


def _entry(profile: ImportProfile, name: str, size: int) -> DirectoryEntry:
    tree = file(profile, size)
    return DirectoryEntry(name, tree.cid, tree.size, tree.tsize)


def _write(path: Path, size: int) -> Path:
    with path.open("wb") as out:
        out.writelines(content(size))
    return path


def _write_folder(path: Path, names: FolderNames) -> Path:
    path.mkdir(parents=True)
    for name, size in names.items():
        _write(path / name, size)
    return path
