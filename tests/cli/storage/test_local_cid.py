"""The CID that a file or folder of this machine will have."""

from pathlib import Path

import pytest

from roost.cli.storage import local_cid, upload_form
from roost.storage.content.unixfs.dagpb import UnixfsKind, decode_node
from roost.storage.content.unixfs.directory import DirectoryEntry, build_folder
from roost.storage.content.unixfs.importer import DagTree, UnixfsImporter
from roost.storage.content.unixfs.profile import PROFILES, ImportProfile

EVERY_PROFILE = pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
BIG = bytes(range(256)) * 5000


def imported(profile: ImportProfile, data: bytes) -> DagTree:
    importer = UnixfsImporter(profile)
    importer.update(data)
    return importer.finish()


def entry(name: str, tree: DagTree) -> DirectoryEntry:
    return DirectoryEntry(name, tree.cid, tree.size, tree.tsize)


@EVERY_PROFILE
@pytest.mark.parametrize("data", [b"", b"hello", BIG], ids=["empty", "small", "big"])
def test_cid_of_a_file_is_that_of_an_import(tmp_path: Path, profile: ImportProfile, data: bytes) -> None:
    (tmp_path / "a").write_bytes(data)
    read: list[int] = []
    assert local_cid.import_files(upload_form.find_files(tmp_path / "a"), profile, read.append) == imported(
        profile, data
    )
    assert sum(read) == len(data)


@EVERY_PROFILE
def test_cid_of_a_folder_is_that_of_an_import(tmp_path: Path, profile: ImportProfile) -> None:
    (tmp_path / "top" / "in").mkdir(parents=True)
    for name, data in (("a", b"a"), ("in/b", BIG), ("in/\u00fc", b"")):
        (tmp_path / "top" / name).write_bytes(data)
    inner = build_folder(profile, [entry("b", imported(profile, BIG)), entry("\u00fc", imported(profile, b""))])
    outer = build_folder(profile, [entry("a", imported(profile, b"a")), entry("in", inner)])
    found = local_cid.import_files(upload_form.find_files(tmp_path / "top"), profile, lambda _: None)
    assert (found.cid, found.size, found.tsize) == (outer.cid, outer.size, outer.tsize)


def test_a_folder_without_files_in_it_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "top" / "empty").mkdir(parents=True)
    (tmp_path / "top" / "a").write_bytes(b"a")
    found = local_cid.import_files(upload_form.find_files(tmp_path / "top"), PROFILES["v1"], lambda _: None)
    assert [link.name for link in decode_node(found.nodes[-1].data).links] == ["a"]


def test_a_large_folder_is_sharded(tmp_path: Path) -> None:
    (tmp_path / "top").mkdir()
    for number in range(1500):
        (tmp_path / "top" / f"{number:05}{'n' * 150}").touch()
    found = local_cid.import_files(upload_form.find_files(tmp_path / "top"), PROFILES["v1"], lambda _: None)
    assert decode_node(found.nodes[-1].data).unixfs.kind is UnixfsKind.SHARD
