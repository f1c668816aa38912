"""Encoding and comparison of indexes."""

import zlib

from roost.agents.workspace.snapshots.index import (
    CommittedFiles,
    IndexedEntry,
    compare_indexes,
    decode_index,
    encode_index,
)
from roost.drivers.git.contract import is_git_path
from roost.storage.content.unixfs.cid import RAW, Cid
from roost.warden_client.changes import ExpectEntry

ROOT, FOLDER, FILE, TOOL, LINK, OTHER = (
    bytes(Cid.for_block(RAW, name)) for name in (b"r", b"d", b"f", b"t", b"l", b"o")
)
INDEX = {
    "": IndexedEntry("folder", ROOT, 3, 60, "pack2"),
    "folder": IndexedEntry("folder", FOLDER, 1, 20, "pack1"),
    "folder/file \udcff\n": IndexedEntry("file", FILE, 1, 9, "pack1", 0o600, stamp=(1, 2, 3)),
    "tool": IndexedEntry("file", TOOL, 2, 9, "pack2", 0o755),
    "link": IndexedEntry("link", LINK, 0, 9, "pack2", target="../\udcfe"),
}


def test_an_index_survives() -> None:
    assert decode_index(encode_index(INDEX)) == INDEX
    assert decode_index(encode_index({})) == {}


def test_a_push_learns_what_a_workspace_holds() -> None:
    nested = {"folder/.git/config": IndexedEntry("file", OTHER, 5, 9, "pack1", 0o644, stamp=(4, 5, 6))}
    committed = CommittedFiles.decode(encode_index({**INDEX, **nested}))
    assert (committed.files, committed.size, committed.is_settled) == (4, 8, False)
    assert committed.expect(["folder/file \udcff\n", "link", "folder", "tool", "missing"]) == [
        ExpectEntry("folder/file \udcff\n", (1, 2, 3)),
        ExpectEntry("link", "../\udcfe"),
        ExpectEntry("folder", None),
        ExpectEntry("tool", (0, 0, 0)),
        ExpectEntry("missing", None),
    ]
    assert committed.list_sizes_without({"tool", "other"}, is_git_path) == [1, 0]
    assert CommittedFiles.decode(None) == CommittedFiles()


def test_nothing_and_another_format_are_empty() -> None:
    assert decode_index(None) == {}
    assert decode_index(zlib.compress(b'[0, "anything", {}]')) == {}


def test_a_file_is_current_only_as_it_was() -> None:
    entry = INDEX["folder/file \udcff\n"]
    assert entry.is_current((1, 2, 3), 1, 0o600)
    assert not entry.is_current((1, 2, 4), 1, 0o600)
    assert not entry.is_current((1, 2, 3), 2, 0o600)
    assert not entry.is_current((1, 2, 3), 1, 0o755)
    assert not INDEX["tool"].is_current((0, 0, 0), 2, 0o755)


def test_indexes_differ_by_files_and_links() -> None:
    other = {path: entry for path, entry in INDEX.items() if path != "tool"}
    other["new"] = INDEX["tool"]
    other["link"] = IndexedEntry("link", OTHER, 0, 9, "pack3", target="x")
    other["folder"] = IndexedEntry("folder", OTHER, 1, 20, "pack3")
    difference = compare_indexes(INDEX, other)
    assert (difference.added, difference.removed, difference.changed) == (["new"], ["tool"], ["link"])


def test_a_file_in_place_of_a_folder_is_added() -> None:
    swapped = {**INDEX, "folder": INDEX["tool"], "tool": INDEX["folder"]}
    difference = compare_indexes(INDEX, swapped)
    assert (difference.added, difference.removed, difference.changed) == (["folder"], ["tool"], [])
