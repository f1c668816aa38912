"""Folders have the CIDs of other implementations: the expected ones are from aleph-cid 0.1.0, with modes from kubo."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.storage.content.unixfs import dagpb
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.dagpb import UnixfsKind
from roost.storage.content.unixfs.directory import DirectoryEntry, build_folder, hash_name
from roost.storage.content.unixfs.errors import InvalidEntryName, MalformedContent
from roost.storage.content.unixfs.importer import DagTree, UnixfsImporter
from roost.storage.content.unixfs.profile import SHARD_ABOVE, UNIXFS_V1_2025, V0, V1, ImportProfile


def entry(profile: ImportProfile, name: str, data: bytes = b"") -> DirectoryEntry:
    importer = UnixfsImporter(profile)
    importer.update(data)
    tree = importer.finish()
    return DirectoryEntry(name, tree.cid, tree.size, tree.tsize)


def of_numbers(profile: ImportProfile, count: int) -> DagTree:
    return build_folder(profile, [entry(profile, f"file-{number}", str(number).encode()) for number in range(count)])


@pytest.mark.parametrize(
    ("profile", "count", "cid"),
    [
        (V0, 3, "QmRx1ixq9zjHWCpVAG566BeGkv7Jui8NfAPAq9193k54Sm"),
        (V1, 3, "bafybeicl3koaruqwhqn5zpvaz3rta6zdmermetu2hcbh4msfcbsrqw3xzi"),
        (V0, 7000, "QmaMHtfEDumYZy4T4JcXNG4fxXgygmaMJxqNXjkiyNCjBe"),
        (V1, 7000, "bafybeifk5gnbftencpstskwnwq6upa4ngo5jyxnqh6gdmz2joccbubvf2m"),
    ],
)
def test_the_root_is_what_others_say(profile: ImportProfile, count: int, cid: str) -> None:
    assert str(of_numbers(profile, count).cid) == cid


@pytest.mark.parametrize(
    ("profile", "cid"),
    [
        (V0, "QmUNLLsPACCz1vLxQVkXqqLX5R1X345qqfHbsf67hvA3Nn"),
        (UNIXFS_V1_2025, "bafybeiczsscdsbs7ffqz55asqdf3smv6klcw3gofszvwlyarci47bgf354"),
    ],
)
def test_an_empty_folder(profile: ImportProfile, cid: str) -> None:
    assert str(build_folder(profile, []).cid) == cid


@pytest.mark.parametrize(
    ("mode", "cid"),
    [
        (0o755, "QmRviohgafvCsbkiTgfQFipbuXJ6k1YtoiaQW4quttJPKu"),
        (0o713, "QmQ1ABnw2iip7sj23EzzBZ9T77KyyfESP6SUboiXPyzNQe"),
    ],
)
def test_an_empty_folder_with_a_mode(mode: int, cid: str) -> None:
    assert str(build_folder(V0, [], mode).cid) == cid


def test_of_a_sharded_folder_the_root_has_the_mode() -> None:
    entries = [entry(V1, f"{number}-{'x' * 100}") for number in range(3000)]
    nodes = [dagpb.decode_node(node.data).unixfs for node in build_folder(V1, entries, 0o750).nodes]
    assert len(nodes) > 2
    assert [node.mode for node in nodes] == [*([None] * (len(nodes) - 1)), 0o750]
    assert {node.kind for node in nodes} == {UnixfsKind.SHARD}


def test_entries_come_in_any_order_and_are_sorted_by_their_bytes() -> None:
    entries = [entry(V1, name) for name in ("b", "a", "ä", "Z")]
    tree = build_folder(V1, entries)
    assert tree == build_folder(V1, reversed(entries))
    assert [link.name for link in dagpb.decode_node(tree.nodes[-1].data).links] == ["Z", "a", "b", "ä"]


@pytest.mark.parametrize("name", ["", "a/b", "a\0", "a\udcff"])
def test_names_that_no_folder_has(name: str) -> None:
    with pytest.raises(InvalidEntryName):
        build_folder(V1, [entry(V1, name)])


def test_no_name_twice() -> None:
    with pytest.raises(InvalidEntryName):
        build_folder(V1, [entry(V1, "a"), entry(V1, "a", b"1")])


@pytest.mark.parametrize("profile", [V0, V1])
def test_a_folder_is_sharded_above_the_threshold_of_names_and_cids(profile: ImportProfile) -> None:
    one = len(bytes(entry(profile, "x").cid))
    names = [f"{number:05}".ljust(64, "x") for number in range(SHARD_ABOVE // (64 + one))]
    left = SHARD_ABOVE - len(names) * (64 + one)
    names[-1] = names[-1].ljust(64 + left, "y")
    assert kind(build_folder(profile, [entry(profile, name) for name in names])) is UnixfsKind.DIRECTORY
    names[-1] += "z"
    assert kind(build_folder(profile, [entry(profile, name) for name in names])) is UnixfsKind.SHARD


def test_the_newest_profile_looks_at_the_block() -> None:
    made = [entry(UNIXFS_V1_2025, f"{number:05}".ljust(200, "x")) for number in range(1100)]
    sizes = {count: len(dagpb_of(made[:count])) for count in (1000, 1100)}
    assert sizes[1000] <= SHARD_ABOVE < sizes[1100]
    assert kind(build_folder(UNIXFS_V1_2025, made[:1000])) is UnixfsKind.DIRECTORY
    assert kind(build_folder(UNIXFS_V1_2025, made)) is UnixfsKind.SHARD


def test_names_that_were_made_to_collide_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roost.storage.content.unixfs.directory.hash_name", lambda _name: b"12345678")
    monkeypatch.setattr("roost.storage.content.unixfs.directory.SHARD_ABOVE", 0)
    with pytest.raises(MalformedContent, match="same hash"):
        build_folder(V1, [entry(V1, "a"), entry(V1, "b")])


def kind(tree: DagTree) -> UnixfsKind:
    return dagpb.decode_node(tree.nodes[-1].data).unixfs.kind


def dagpb_of(entries: list[DirectoryEntry]) -> bytes:
    links = [dagpb.PBLink(one.cid, one.name, one.tsize) for one in entries]
    return dagpb.encode_node(links, dagpb.UnixfsData(UnixfsKind.DIRECTORY))


def test_a_cid_of_another_version_in_a_folder() -> None:
    old = Cid.parse("QmbFMke1KXqnYyBBWxB74N4c5SBnJMVAiMNRcGu6x1AwQH")
    tree = build_folder(V1, [DirectoryEntry("old", old, 0, 6)])
    assert dagpb.decode_node(tree.nodes[-1].data).links[0].cid == old


NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\0"), min_size=1, max_size=12)


def unfolded(tree: DagTree) -> dict[str, Cid]:
    """Return the entries of a folder, read shard by shard; each level uses two digits of the hash."""
    nodes = {node.cid: node.data for node in tree.nodes}
    found: dict[str, Cid] = {}

    def look(cid: Cid, digits: str) -> None:
        node = dagpb.decode_node(nodes[cid])
        if node.unixfs.kind is UnixfsKind.DIRECTORY:
            found.update({link.name: link.cid for link in node.links})
            return
        bits = int.from_bytes(node.unixfs.data, "big")
        assert bits.bit_count() == len(node.links)
        assert [link.name[:2] for link in node.links] == sorted(link.name[:2] for link in node.links)
        for link in node.links:
            assert bits >> int(link.name[:2], 16) & 1
            if len(link.name) == 2:
                look(link.cid, digits + link.name)
            else:
                assert hash_name(link.name[2:]).hex().upper().startswith(digits + link.name[:2])
                found[link.name[2:]] = link.cid

    look(tree.cid, "")
    return found


@given(st.dictionaries(NAMES, st.binary(max_size=4), max_size=30), st.booleans())
def test_any_names_are_found_again(files: dict[str, bytes], sharded: bool) -> None:
    entries = [entry(V1, name, data) for name, data in files.items()]
    with pytest.MonkeyPatch.context() as patch:
        if sharded:
            patch.setattr("roost.storage.content.unixfs.directory.SHARD_ABOVE", -1 if entries else 0)
        tree = build_folder(V1, entries)
    assert unfolded(tree) == {one.name: one.cid for one in entries}
    assert tree.size == sum(map(len, files.values()))
    assert tree.tsize == sum(len(node.data) for node in tree.nodes) + sum(one.tsize for one in entries)
    if entries:
        assert (kind(tree) is UnixfsKind.SHARD) is sharded


def test_names_that_share_the_first_digits_go_deeper() -> None:
    """Among this many names some share the first byte of their hash, and some of these the second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("roost.storage.content.unixfs.directory.SHARD_ABOVE", 0)
        tree = build_folder(V1, [entry(V1, str(number)) for number in range(600)])
    assert len(tree.nodes) > 100
    assert set(unfolded(tree)) == {str(number) for number in range(600)}


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("", "0000000000000000"),
        ("hello", "cbd8a7b341bd9b02"),
        ("hello, world", "342fac623a5ebc8e"),
        ("19 Jan 2038 at 3:14:07 AM", "b89e5988b737affc"),
        ("The quick brown fox jumps over the lazy dog", "e34bbc7bbc071b6c"),
        ("The quick brown fox jumps over the lazy dog.", "cd99481f9ee902c9"),
    ],
)
def test_the_hash_of_a_name_is_the_first_half_of_murmur3(name: str, digest: str) -> None:
    assert hash_name(name).hex() == digest
