"""Changed trees and commits, as bytes."""

from datetime import UTC, datetime

import pytest

from roost.drivers.git.commit_writer import TreeEditor, format_commit
from roost.drivers.git.contract import GitFailed
from roost.drivers.git.pack_writer import ObjectKind, object_id

TIME = datetime.fromtimestamp(1_700_000_000, UTC)
TREE = bytes(20)


@pytest.mark.parametrize(
    ("author", "line"),
    [
        ("Ada <a@b>", b"Ada <a@b>"),
        ("Ada", b"Ada <>"),
        ("Ada <a@b>\nM 100644", b"Ada a@bM 100644 <>"),
        ("<a@b>", b"agent <a@b>"),
        ("", b"agent <>"),
        ("Z\u00fc <\n>", "Z\u00fc <>".encode()),
        ("\ud800", b"? <>"),
    ],
)
def test_an_author_is_one_line(author: str, line: bytes) -> None:
    signed = line + b" 1700000000 +0000"
    assert format_commit(TREE, "1" * 40, "a\0b", author, TIME).split(b"\n") == [
        b"tree " + b"0" * 40, b"parent " + b"1" * 40, b"author " + signed, b"committer " + signed, b"", b"ab"
    ]  # fmt: skip


class TreeStore(dict[bytes, bytes]):
    """A store of trees that remembers which were read."""

    def __init__(self) -> None:
        self.read: list[bytes] = []

    def add(self, kind: ObjectKind, data: bytes) -> bytes:
        return self.setdefault(object_id(kind, data), data) and object_id(kind, data)

    async def find(self, oid: bytes) -> bytes:
        self.read.append(oid)
        return self[oid]


async def test_only_changed_folders_are_read_and_written() -> None:
    trees = TreeStore()
    editor = TreeEditor(trees.find)
    for path in ("a/deep/1", "a.b", "a0", "b/2", "b/3/4"):  # Git sorts the folder `a` between `a.b` and `a0`
        await editor.put_entry(path, b"100644", bytes(20))
    root = editor.write_trees(trees.add)
    names = [trees[root].index(name) for name in (b"a.b\0", b" a\0", b"a0\0", b" b\0")]
    assert names == sorted(names)
    before = dict(trees)
    again = TreeEditor(trees.find)
    await again.open_tree(root)
    await again.put_entry("b/3", b"120000", bytes(20))
    await again.remove_entry("missing/x")
    await again.remove_entry("a0/x")
    again.write_trees(trees.add)
    assert (len(trees), len(trees.read)) == (len(before) + 2, 2)
    await again.put_entry("b/3/4", b"100644", bytes(20))
    assert again.write_trees(trees.add) == root
    await again.remove_entry("b/3/4")
    (below,) = trees[again.write_trees(trees.add)].split(b"40000 b\0")[1:]
    assert trees[below] == b"100644 2\0" + bytes(20), "an empty folder is left out"


@pytest.mark.parametrize("path", ["", "/a", "a/", "a//b", "../a", "a/./b", "..", "a\0"])
async def test_paths_of_no_tree_are_refused(path: str) -> None:
    editor = TreeEditor(TreeStore().find)
    with pytest.raises(GitFailed):
        await editor.put_entry(path, b"100644", bytes(20))
    with pytest.raises(GitFailed):
        await editor.remove_entry(path)


@pytest.mark.parametrize("data", [b"100644", b"100644 a\0short", b"100644\0" + bytes(20), b"100644 \0" + bytes(20)])
async def test_malformed_trees_are_refused(data: bytes) -> None:
    trees = TreeStore()
    with pytest.raises(GitFailed):
        await TreeEditor(trees.find).open_tree(trees.add(ObjectKind.TREE, data))
