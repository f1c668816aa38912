"""Packs and indexes, read by Git."""

import os
from io import BytesIO
from pathlib import Path
from typing import cast

import pytest

from roost.drivers.git.pack_writer import BufferedRandom, ObjectKind, PackWriter, object_id
from tests.conformance.git_objects import git

CONTENTS = {
    "empty": b"",
    "short": b"text",
    "text": b"line of text\n" * 10_000,
    "random": os.urandom(200_000),  # stored, in several blocks
    "block": os.urandom(65_535),
}


def write_part_by_part(pack: PackWriter, data: bytes, step: int = 50_000) -> bytes:
    blob = pack.begin_blob(len(data))
    for start in range(0, len(data), step):
        blob.write_part(data[start : start + step])
    return blob.finish()


def test_git_reads_every_object_once(tmp_path: Path) -> None:
    with (tmp_path / "draft").open("w+b") as file:
        pack = PackWriter(file)
        whole = [pack.add_object(ObjectKind.BLOB, data) for data in CONTENTS.values()]
        again = [write_part_by_part(pack, data) for data in CONTENTS.values()]
        parts = [write_part_by_part(pack, data + b"!") for data in CONTENTS.values()]
        assert [pack.add_object(ObjectKind.BLOB, data + b"!") for data in CONTENTS.values()] == parts
        tree = pack.add_object(ObjectKind.TREE, b"100644 file\0" + whole[1])
        name, index = pack.finish_pack()
    assert whole == again
    git(tmp_path, "init", "-q", "--bare")
    stored = tmp_path / f"objects/pack/pack-{name}.pack"
    (tmp_path / "draft").rename(stored)
    stored.with_suffix(".idx").write_bytes(index)
    listed = git(tmp_path, "verify-pack", "-v", stored)
    assert f"non delta: {2 * len(CONTENTS) + 1} objects" in listed
    assert git(tmp_path, "index-pack", "--strict", "-o", "own.idx", stored) == name
    assert (tmp_path / "own.idx").read_bytes() == index
    for oid, content in zip(whole, CONTENTS.values(), strict=True):
        assert git(tmp_path, "hash-object", "--stdin", data=content) == oid.hex()
    assert git(tmp_path, "ls-tree", tree.hex()) == f"100644 blob {whole[1].hex()}\tfile"
    assert git(tmp_path, "fsck", "--strict", "--full").count("dangling") == 2 * len(CONTENTS)


class HugeFile(BytesIO):
    """A file in which each object takes 1 GiB."""

    def write(self, _: object, /) -> int:
        return 1024**3


def test_offsets_have_64_bits(tmp_path: Path) -> None:
    pack = PackWriter(cast("BufferedRandom", HugeFile()))
    ids = [pack.add_object(ObjectKind.BLOB, b"%d" % number) for number in range(8)]
    _, index = pack.finish_pack()
    listed = [line.split()[:2] for line in git(tmp_path, "show-index", data=index).splitlines()]
    assert sorted(listed, key=lambda row: int(row[0])) == [
        [str((1 + number) * 1024**3), oid.hex()] for number, oid in enumerate(ids)
    ]


@pytest.mark.parametrize("size", [3, 5])
def test_a_blob_has_its_size(tmp_path: Path, size: int) -> None:
    with (tmp_path / "draft").open("w+b") as file:
        blob = PackWriter(file).begin_blob(size)
        with pytest.raises(ValueError, match="than its size"):  # noqa: PT012 - too long or too short
            blob.write_part(b"four")
            blob.finish()


def test_ids_are_those_of_git() -> None:
    assert object_id(ObjectKind.TREE, b"").hex() == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
