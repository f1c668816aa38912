"""The importer's CIDs are those of other implementations.

The expected CIDs are from ipfs-unixfs-importer 17.1.1 for the same bytes and parameters, and those with modes and of
links from the tests of kubo.
"""

import hashlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.storage.content.unixfs import dagpb
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.dagpb import UnixfsData, UnixfsKind
from roost.storage.content.unixfs.importer import DagTree, UnixfsImporter, build_file, build_link
from roost.storage.content.unixfs.profile import PROFILES, UNIXFS_V1_2025, V0, V1, ImportProfile

CHUNK = 262144
WANTED = {
    0: (
        "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
        "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku",
        "QmbFMke1KXqnYyBBWxB74N4c5SBnJMVAiMNRcGu6x1AwQH",
    ),
    1: (
        "bafkreidf6fmccbqwgxtia7ygoan7bijnr2e5z74i35mwrpiiele5xnjpdq",
        "bafkreidf6fmccbqwgxtia7ygoan7bijnr2e5z74i35mwrpiiele5xnjpdq",
        "QmY89jwcpw4xEqEb2rSAiijxQ7msxaqSnNK7FMs34gpZVd",
    ),
    CHUNK - 1: (
        "bafkreicmfkny3prc2djwbree25ty5c4hcrvrdfbvyc3jbhccmshqutybvy",
        "bafkreicmfkny3prc2djwbree25ty5c4hcrvrdfbvyc3jbhccmshqutybvy",
        "QmNbUBRmXVqiLB2wot2BFaYBXFoZMH4A3tdZnbxe2G7tak",
    ),
    CHUNK: (
        "bafkreigdithuoqbjucvwp44szf7szhkg4z45ugywzy6yzq4rsv3tcavdl4",
        "bafkreigdithuoqbjucvwp44szf7szhkg4z45ugywzy6yzq4rsv3tcavdl4",
        "QmfW5qYcJFraE6SrTkskpttfZc3o89YDtffFtqpgwLkhLJ",
    ),
    CHUNK + 1: (
        "bafybeichenzcotaejwf56bls3vishpcnicfgybfu2v6ul67lft745lbbfy",
        "bafkreid2coihsgwq7odkd5h7jlpxre4uy45yezorhijkgprfzshed4bnxq",
        "QmUHwmnSC1zAFY62T9tyZbYfikh6c4b46dhTb8Qk3k2mM9",
    ),
    4 * CHUNK: (
        "bafybeigobzzskcgcocxxhy6tijytube2rjj7ivfs5dpwwzaj5nwjr7kcki",
        "bafkreibxvc75wgaraguwrs3jw2i4h4cisjnzliy4bxaqlszbfryrjydifq",
        "QmVE966MSERx1tYHU9HTta6KE4knhK8tptSERDY1G38oct",
    ),
    4 * CHUNK + 1: (
        "bafybeieyct732lk3c6uychdlwtxica6s7ztt5jnyohgcnoxlnqr5felsgy",
        "bafybeiadumpzxqikbmsxhsbcrqxti4qfmpcvgqs3xxih2b5on62w7qupam",
        "QmPtKKmY6WKm6cBpVaQ7uwke2CN7D7a1Tb6D1CAsYxN3uY",
    ),
    174 * CHUNK: (
        "bafybeiee6ashda7rqhh7t6eq5s42avjwqyghtqlfuawzmctb7qhah5hnsa",
        "bafybeic566337k7sthclwkgsmy3ufa3pest5rloiyl32oxdy3hhaeni6xm",
        "QmYYLf6scZWS3vJCBWt1ZZUY8gUycevtJ4CvwQyCz7BgkN",
    ),
    174 * CHUNK + 1: (
        "bafybeihhxa4cyjsmdvf6eaum6ohdcptglmzidtdjtynqo54zpgshe4oyzi",
        "bafybeibm3o2uezje45sg5zrpk6xz2e4csjeojw3xunzthudgpfcvcbt7ii",
        "Qmb6zADcz23QYH2K1dhn4g1kmtxtPKUVwvEU63K4kBtYtn",
    ),
}
CASES = [
    pytest.param(profile, size, cids[place], id=f"{profile.name}-{size}")
    for size, cids in WANTED.items()
    for place, profile in enumerate((V1, UNIXFS_V1_2025, V0))
]
CONTENT = hashlib.shake_128(b"roost").digest(max(WANTED))


def imported(profile: ImportProfile, data: bytes) -> DagTree:
    importer = UnixfsImporter(profile)
    importer.update(data)
    return importer.finish()


@pytest.mark.parametrize(("profile", "size", "cid"), CASES)
def test_the_root_is_what_others_say(profile: ImportProfile, size: int, cid: str) -> None:
    tree = imported(profile, CONTENT[:size])
    assert (str(tree.cid), tree.size) == (cid, size)


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_how_the_bytes_come_makes_no_difference(profile: ImportProfile) -> None:
    data = CONTENT[: 9 * CHUNK + 7]
    whole = imported(profile, data)
    for seed in range(3):
        pieces, at, chance = UnixfsImporter(profile), 0, random.Random(seed)
        while at < len(data):
            step = chance.randint(1, 3 * CHUNK)
            pieces.update(memoryview(data)[at : at + step])
            at += step
        assert pieces.finish() == whole


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
@pytest.mark.parametrize("leaves", [0, 1, 5])
def test_it_goes_on_after_whole_leaves(profile: ImportProfile, leaves: int) -> None:
    data = CONTENT[: 7 * profile.chunk + 3]
    whole = imported(profile, data)
    later = UnixfsImporter.resume(profile, whole.leaves[: leaves * 32])
    later.update(data[leaves * profile.chunk :])
    assert later.finish() == whole


def test_sizes_count_all_blocks() -> None:
    tree = imported(V1, CONTENT[: 3 * CHUNK])
    assert tree.tsize == 3 * CHUNK + sum(len(node.data) for node in tree.nodes)
    assert len(tree.leaves) == 3 * 32


SMALL = (ImportProfile("raw", 1, 16, 3, raw=True), ImportProfile("nodes", 0, 16, 3, raw=False))
"""Profiles with leaves and nodes so small that a tree of many levels is made in no time."""


@given(st.binary(max_size=2000), st.lists(st.integers(1, 100), max_size=30), st.sampled_from(SMALL))
def test_any_content_in_any_pieces_is_the_same_tree(data: bytes, steps: list[int], profile: ImportProfile) -> None:
    importer, at = UnixfsImporter(profile), 0
    for step in [*steps, len(data)]:
        importer.update(data[at : at + step])
        at += step
    assert importer.finish() == imported(profile, data) == build_file(profile, data)


@given(st.binary(max_size=2000), st.sampled_from(SMALL))
def test_any_tree_holds_its_content(data: bytes, profile: ImportProfile) -> None:
    """Every node has the length that it declares, and at most as many links as the profile's width."""
    tree = imported(profile, data)
    nodes = {node.cid: node.data for node in tree.nodes}
    digests = [tree.leaves[at : at + 32] for at in range(0, len(tree.leaves), 32)]
    starts = {digest: at * profile.chunk for at, digest in enumerate(digests)}

    def walked(cid: Cid) -> tuple[bytes, int]:
        """Return the content below a node, and the bytes of all its blocks."""
        if cid not in nodes:
            leaf = data[starts[cid.digest] :][: profile.chunk]
            before, after = (b"", b"") if profile.raw else dagpb.leaf_frame(len(leaf))
            assert cid.matches(before + leaf + after)
            return leaf, len(before + leaf + after)
        assert cid.matches(nodes[cid])
        node = dagpb.decode_node(nodes[cid])
        parts = [walked(link.cid) for link in node.links]
        assert (
            (1 if cid == tree.cid else 0) < len(parts) <= profile.width
        )  # the last branches of a balanced tree may be thin
        assert [len(content) for content, _ in parts] == list(node.unixfs.sizes)
        assert [size for _, size in parts] == [link.size for link in node.links]
        content = b"".join(content for content, _ in parts)
        assert node.unixfs.size == len(content)
        return content, len(nodes[cid]) + sum(size for _, size in parts)

    assert walked(tree.cid) == (data, tree.tsize)
    assert tree.size == len(data)


@given(st.binary(min_size=17, max_size=2000), st.integers(0, 200), st.sampled_from(SMALL))
def test_it_goes_on_after_any_whole_leaf(data: bytes, leaves: int, profile: ImportProfile) -> None:
    whole = imported(profile, data)
    kept = min(leaves, (len(data) - 1) // profile.chunk)  # the last leaf may be shorter
    later = UnixfsImporter.resume(profile, whole.leaves[: kept * 32])
    assert later.leaves == whole.leaves[: kept * 32]
    later.update(data[kept * profile.chunk :])
    assert later.finish() == whole


@pytest.mark.parametrize(
    ("mode", "cid"),
    [
        (0o640, "QmQLgxypSNGNFTuUPGCecq6dDEjb6hNB5xSyVmP3cEuNtq"),
        (0o764, "QmchD3BN8TQ3RW6jPLxSaNkqvfuj7syKhzTRmL4EpyY1Nz"),
    ],
)
def test_an_empty_file_with_a_mode_is_what_kubo_says(mode: int, cid: str) -> None:
    assert str(UnixfsImporter(V0).finish(mode).cid) == cid


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
def test_the_single_leaf_of_a_file_with_a_mode_gets_a_node_around_it(profile: ImportProfile) -> None:
    plain, importer = imported(profile, b"small"), UnixfsImporter(profile)
    importer.update(b"small")
    tree = importer.finish(0o755)
    (block,) = tree.nodes
    node = dagpb.decode_node(block.data)
    assert [link.cid for link in node.links] == [plain.cid]
    assert node.unixfs == UnixfsData(UnixfsKind.FILE, size=5, sizes=[5], mode=0o755)
    assert (tree.cid, tree.size, tree.tsize) == (block.cid, 5, plain.tsize + len(block.data))
    assert tree.leaves == plain.leaves


@given(st.binary(max_size=2000), st.sampled_from(SMALL))
def test_the_root_of_any_file_has_its_mode_and_all_below_is_as_without(data: bytes, profile: ImportProfile) -> None:
    plain, importer = imported(profile, data), UnixfsImporter(profile)
    importer.update(data)
    tree = importer.finish(0o755)
    assert tree == build_file(profile, data, 0o755)
    root = dagpb.decode_node(tree.nodes[-1].data)
    assert (tree.cid, root.unixfs.mode, root.unixfs.size) == (tree.nodes[-1].cid, 0o755, len(data))
    below = [node.cid for node in tree.nodes[:-1]]
    assert below == [node.cid for node in plain.nodes[: len(below)]]


@pytest.mark.parametrize(
    ("target", "cid"),
    [
        (b"files/foo/baz", "QmdocmZeF7qwPT9Z8SiVhMSyKA2KKoA2J7jToW6z6WBmxR"),
        (b"files/does/not/exist", "QmWYN8SEXCgNT2PSjB6BnxAx6NJQtazWoBkTRH9GRfPFFQ"),
    ],
)
def test_a_link_is_what_kubo_says(target: bytes, cid: str) -> None:
    tree = build_link(V0, target)
    assert (str(tree.cid), tree.size, tree.tsize) == (cid, len(target), len(tree.nodes[0].data))
