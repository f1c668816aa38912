"""A CAR that is handed in is a whole file or folder, or nothing; and it comes out again, block by block."""

from collections.abc import Iterable

import pytest

from roost.storage.content import cars, service
from roost.storage.content.cars import Kept
from roost.storage.content.errors import ContentMissing, InvalidSpan, TooManyBlocks
from roost.storage.content.export import DagScope, Span, blocks_car
from roost.storage.content.model import Hold, Network
from roost.storage.unixfs import car, dagpb
from roost.storage.unixfs.car import written
from roost.storage.unixfs.cid import DAG_CBOR, DAG_PB, IDENTITY, RAW, Cid
from roost.storage.unixfs.dagpb import Kind, Link, Unixfs
from roost.storage.unixfs.errors import Malformed
from roost.storage.unixfs.folder import folder
from roost.storage.unixfs.importer import Importer, Tree
from roost.storage.unixfs.profile import PROFILES, V1, Profile
from tests.storage.house import CONTENT, House, entry

Blocks = list[tuple[Cid, bytes]]
EVERY_PROFILE = pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)


def blocks_of(profile: Profile, data: bytes) -> tuple[Tree, Blocks]:
    importer = Importer(profile)
    importer.update(data)
    tree = importer.finish()
    found: Blocks = []
    for number in range(len(tree.leaves) // 32):
        leaf = data[number * profile.chunk : (number + 1) * profile.chunk]
        before, after = (b"", b"") if profile.raw else dagpb.leaf_frame(len(leaf))
        found.append(
            (Cid.of(RAW if profile.raw else DAG_PB, before + leaf + after, profile.version), before + leaf + after)
        )
    return tree, found + [(node.cid, node.data) for node in tree.nodes]


def house_of_files(profile: Profile, count: int = 2) -> tuple[Cid, Blocks]:
    """`in/big`, and so many small files beside it."""
    big, blocks = blocks_of(profile, CONTENT)
    small, more = blocks_of(profile, b"small")
    inner = folder(profile, [entry("big", big)])
    outer = folder(profile, [entry("in", inner), *(entry(f"{n}".rjust(80, "n"), small) for n in range(count))])
    nodes = [(node.cid, node.data) for node in (*inner.nodes, *outer.nodes)]
    return outer.cid, [*blocks, *more, *nodes]


async def take(place: House, data: bytes, step: int = 100_000) -> Kept:
    async with place.content.receive_car() as pack:
        for at in range(0, len(data), step):
            await pack.write(data[at : at + step])
        kept = await pack.end()
        hold = Hold(pack.pack_id, "file/car", place.tenant_id, Network.PRIVATE)
        await pack.commit(lambda connection: service.hold(connection, hold))
    return kept


async def refused(place: House, blocks: Iterable[tuple[Cid, bytes]], roots: list[Cid], why: str) -> None:
    with pytest.raises(Malformed, match=why):
        await take(place, b"".join(written(roots, blocks)))
    assert not [blob async for blob in place.content._blobs.list()]


@EVERY_PROFILE
async def test_a_folder_is_read_out_of_it(place: House, profile: Profile) -> None:
    root, blocks = house_of_files(profile, 3000)
    kept = await take(place, b"".join(written([root], blocks)))
    assert kept == Kept(root, Kind.SHARD, len(CONTENT) + 5 * 3000, 3001)
    steps = await place.reader.resolve(place.scope, root, ["in", "big"])
    parts = [piece async for piece in place.reader.content(place.scope, steps[-1], 1_000_000, 3_000_001)]
    assert b"".join(parts) == CONTENT[1_000_000:3_000_001]
    assert len([link async for link in place.reader.entries(place.scope, steps[0])]) == 3001


@EVERY_PROFILE
async def test_a_file_alone(place: House, profile: Profile) -> None:
    tree, blocks = blocks_of(profile, CONTENT)
    kept = await take(place, b"".join(written([tree.cid], reversed(blocks))), 1 << 22)
    assert kept == Kept(tree.cid, Kind.FILE, len(CONTENT), 1)
    for cid, block in blocks:
        assert await place.reader.block(place.scope, cid) == block


async def test_a_block_alone(place: House) -> None:
    tree, blocks = blocks_of(V1, b"small")
    assert await take(place, b"".join(written([tree.cid], blocks))) == Kept(tree.cid, Kind.RAW, 5, 1)
    stat = await place.reader.stat(place.scope, tree.cid)
    assert b"".join([piece async for piece in place.reader.content(place.scope, stat)]) == b"small"


async def test_no_file_lacks_a_block(place: House) -> None:
    root, blocks = house_of_files(V1)
    for lost in (0, 5, len(blocks) - 2):
        await refused(place, blocks[:lost] + blocks[lost + 1 :], [root], f"lacks the block {blocks[lost][0]}")
    await refused(place, blocks[:-1], [root], "does not have the block of its root")


async def test_one_root_is_needed(place: House) -> None:
    root, blocks = house_of_files(V1)
    await refused(place, blocks, [], "0 roots")
    await refused(place, blocks, [root, blocks[0][0]], "2 roots")


async def test_what_is_cut_off_or_changed(place: House) -> None:
    root, blocks = house_of_files(V1)
    data = b"".join(written([root], blocks))
    for broken in (data[:-1], data[:3_000_000] + b"!" + data[3_000_001:]):
        with pytest.raises(Malformed):
            await take(place, broken)
    assert not [blob async for blob in place.content._blobs.list()]


async def test_what_belongs_to_no_file(place: House) -> None:
    odd = Cid.of(DAG_CBOR, b"\xa0")
    await refused(place, [(odd, b"\xa0")], [odd], "belongs to no file or folder")
    link = dagpb.encode([], Unixfs(Kind.SYMLINK, b"/etc/passwd"))
    cid = Cid.of(DAG_PB, link)
    await refused(place, [(cid, link)], [cid], "neither a file nor a folder")


@pytest.mark.parametrize("sizes", [[4], [6], [], [5, 0]])
async def test_files_that_tell_wrong_sizes(place: House, sizes: list[int]) -> None:
    small = Cid.of(RAW, b"small")
    lie = dagpb.encode([Link(small, "", 5)], Unixfs(Kind.FILE, size=sum(sizes), sizes=sizes))
    cid = Cid.of(DAG_PB, lie)
    await refused(place, [(small, b"small"), (cid, lie)], [cid], "not as long as it says")


async def test_files_that_are_too_deep(place: House) -> None:
    blocks: Blocks = [(Cid.of(RAW, b"small"), b"small")]
    for _ in range(65):
        node = dagpb.encode([Link(blocks[-1][0], "", 5)], Unixfs(Kind.FILE, size=5, sizes=[5]))
        blocks.append((Cid.of(DAG_PB, node), node))
    await refused(place, blocks, [blocks[-1][0]], "too deep")
    assert (await take(place, b"".join(written([blocks[-2][0]], blocks)))).size == 5


async def test_it_holds_so_many_blocks_and_links(place: House, monkeypatch: pytest.MonkeyPatch) -> None:
    root, blocks = house_of_files(V1)
    monkeypatch.setattr(cars, "MOST_BLOCKS", 5)
    await refused(place, blocks, [root], "more than 5 blocks")
    monkeypatch.setattr(cars, "MOST_BLOCKS", 100)
    monkeypatch.setattr(cars, "MOST_LINKS", 15)
    await refused(place, blocks, [root], "more than 15 links")


async def test_a_folder_of_folders_of_itself_counts_and_stays_small(place: House) -> None:
    """2^60 files by 61 blocks: counted without going through them, and sent once each."""
    blocks: Blocks = [(Cid.of(RAW, b"x"), b"x")]
    for _ in range(60):
        below = blocks[-1][0]
        node = dagpb.encode([Link(below, "a", 1), Link(below, "b", 1)], Unixfs(Kind.DIRECTORY))
        blocks.append((Cid.of(DAG_PB, node), node))
    kept = await take(place, b"".join(written([blocks[-1][0]], blocks)))
    assert kept.files == 2**31 - 1
    assert len(await sent(place, kept.cid, [])) == 61


async def test_content_in_cids(place: House) -> None:
    tiny = Cid(1, RAW, IDENTITY, b"tiny")
    node = dagpb.encode([Link(tiny, "", 4)], Unixfs(Kind.FILE, size=4, sizes=[4]))
    cid = Cid.of(DAG_PB, node)
    assert (await take(place, b"".join(written([cid], [(cid, node)])))).size == 4
    assert await sent(place, cid, []) == [(cid, node)]


async def test_blocks_beside_the_root_are_not_content(place: House) -> None:
    tree, blocks = blocks_of(V1, b"small")
    await take(place, b"".join(written([tree.cid], [*blocks, (Cid.of(RAW, b"beside"), b"beside")])))
    with pytest.raises(ContentMissing):
        await place.reader.block(place.scope, Cid.of(RAW, b"beside"))


async def sent(
    place: House, root: Cid, path: list[str], dag_scope: DagScope = DagScope.ALL, span: Span | None = None
) -> Blocks:
    """The blocks of a CAR of ours, no one twice."""
    reader, steps = car.Reader(), await place.reader.resolve(place.scope, root, path)
    found: Blocks = []
    async for piece in blocks_car(place.reader, place.scope, steps, dag_scope, span):
        found += [(one.cid, one.data) for one in reader.feed(piece)]
    reader.finish()
    assert reader.roots == [steps[-1].cid]
    assert len({cid for cid, _ in found}) == len(found)
    return found


@EVERY_PROFILE
async def test_all_of_it_goes_out(place: House, profile: Profile) -> None:
    root, blocks = house_of_files(profile, 3000)
    await take(place, b"".join(written([root], blocks)))
    assert sorted(map(str, dict(await sent(place, root, [])))) == sorted(map(str, dict(blocks)))


@EVERY_PROFILE
async def test_what_was_imported_goes_out_too(place: House, profile: Profile) -> None:
    tree, blocks = blocks_of(profile, CONTENT)
    await place.keep(b"before", CONTENT, profile=profile)
    assert dict(await sent(place, tree.cid, [])) == dict(blocks)


async def test_the_way_is_proved(place: House) -> None:
    """A client that has only the root's CID can check each step to the block at the end."""
    root, blocks = house_of_files(V1, 3000)
    await take(place, b"".join(written([root], blocks)))
    for scope, most in ((DagScope.BLOCK, 4), (DagScope.ENTITY, 30), (DagScope.ALL, 30)):
        found = await sent(place, root, ["in", "big"], scope)
        assert found[0][0] == root
        assert len(found) <= most
        linked = {root} | {link.cid for cid, data in found if cid.codec == DAG_PB for link in dagpb.decode(data).links}
        assert {cid for cid, _ in found} <= linked


async def test_the_list_of_a_folder_goes_out_without_its_files(place: House) -> None:
    root, blocks = house_of_files(V1, 3000)
    await take(place, b"".join(written([root], blocks)))
    found = await sent(place, root, [], DagScope.ENTITY)
    assert 1 < len(found) < 500
    assert all(dagpb.decode(data).unixfs.kind is Kind.SHARD for _, data in found)
    assert len(await sent(place, root, [], DagScope.BLOCK)) == 1


@pytest.mark.parametrize(
    ("text", "leaves"),
    [("0:0", [0]), ("262143:262144", [0, 1]), ("-1:*", [19]), ("4900000:-1", [18, 19]), ("0:*", range(20))],
)
async def test_parts_of_a_file(place: House, text: str, leaves: Iterable[int]) -> None:
    _, (tree,) = await place.keep(CONTENT)
    found = await sent(place, tree.cid, [], span=Span.parse(text))
    wanted = [Cid.of(RAW, CONTENT[n * V1.chunk : (n + 1) * V1.chunk]) for n in leaves]
    assert [cid for cid, _ in found] == [tree.cid, *wanted]


@pytest.mark.parametrize("text", ["", "1", "a:b", "1:2:3", ":5", "1:", "1 :2", "9" * 30 + ":*"])
def test_what_is_no_span(text: str) -> None:
    with pytest.raises(InvalidSpan):
        Span.parse(text)


async def test_it_ends(place: House, monkeypatch: pytest.MonkeyPatch) -> None:
    _, (tree,) = await place.keep(CONTENT)
    monkeypatch.setattr("roost.storage.content.export.MOST_BLOCKS", 5)
    with pytest.raises(TooManyBlocks):
        await sent(place, tree.cid, [])
