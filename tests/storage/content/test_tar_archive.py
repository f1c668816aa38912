"""A folder is exported as a tar that common programs unpack; a malicious folder is refused."""

import io
import subprocess
import tarfile
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path

import pytest

from roost.core.problem import Problem
from roost.storage.content import service, tar_archive
from roost.storage.content.errors import ContentDamaged, NotArchivable, TooDeep, TooManyArchiveMembers
from roost.storage.content.model import ContentNetwork, ContentScope, PackReference
from roost.storage.content.reader import ContentStat
from roost.storage.content.tar_archive import TarArchive
from roost.storage.content.unixfs import dagpb
from roost.storage.content.unixfs.cid import DAG_PB, IDENTITY, RAW, Cid
from roost.storage.content.unixfs.dagpb import PBLink, UnixfsData, UnixfsKind
from roost.storage.content.unixfs.directory import build_folder
from roost.storage.content.unixfs.profile import V0, V1, ImportProfile
from tests.storage.cars import EVERY_PROFILE, Blocks, blocks_of, encode_car, take
from tests.storage.storage_env import CONTENT, StorageEnv, entry

LEAF = Cid.for_block(RAW, b"x")


@pytest.fixture
def dialect() -> str:
    """Use SQLite only; other tests cover this SQL on both databases."""
    return "sqlite"


async def made(env: StorageEnv, cid: Cid) -> TarArchive:
    return TarArchive(env.reader, env.scope, await env.reader.stat(env.scope, cid))


async def packed(env: StorageEnv, cid: Cid) -> bytes:
    tar = await made(env, cid)
    await tar.check()
    return b"".join([piece async for piece in tar.stream()])


def unpacked(data: bytes) -> dict[str, bytes | None]:
    """Return names and contents, None for folders."""
    found: dict[str, bytes | None] = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in tar:
            content = tar.extractfile(member)
            found[member.name] = None if content is None else content.read()
    return found


async def sent(tar: TarArchive, out: bytearray) -> None:
    async for piece in tar.stream():
        out += piece


async def kept(env: StorageEnv, profile: ImportProfile, files: Mapping[str, bytes], below: str = "") -> Cid:
    """Store a folder of these files, inside another folder if it has a name."""
    blocks: Blocks = []
    entries = []
    for name, data in files.items():
        tree, more = blocks_of(profile, data)
        entries.append(entry(name, tree))
        blocks += more
    made = build_folder(profile, entries)
    blocks += [(node.cid, node.data) for node in made.nodes]
    if below:
        made = build_folder(profile, [entry(below, made)])
        blocks += [(node.cid, node.data) for node in made.nodes]
    return (await take(env, encode_car([made.cid], blocks))).cid


async def hostile_folder(env: StorageEnv, links: Sequence[PBLink], kind: UnixfsKind = UnixfsKind.DIRECTORY) -> Cid:
    """Build a folder of arbitrary links, one of which leads to one byte."""
    node = dagpb.encode_node(links, UnixfsData(kind))
    cid = Cid.for_block(DAG_PB, node)
    await take(env, encode_car([cid], [(cid, node), (LEAF, b"x")]))
    return cid


@EVERY_PROFILE
async def test_unpacked_tar_has_the_same_files(env: StorageEnv, profile: ImportProfile, tmp_path: Path) -> None:
    files = {
        "big": CONTENT,
        "empty": b"",
        "größe €.txt": b"1",
        "new\nline": b"2",
        "-rf *": b"3",
        "n" * 255: b"4",
        "exact": bytes(512),
        "exact and one": bytes(513),
    }
    cid = await kept(env, profile, files, below="in")
    (tmp_path / "a.tar").write_bytes(await packed(env, cid))
    done = subprocess.run(["tar", "xf", "a.tar"], cwd=tmp_path, capture_output=True, check=True)  # GNU tar
    assert done.stderr == b""
    found = {path.name: path.read_bytes() for path in (tmp_path / str(cid) / "in").iterdir()}
    assert found == files
    with tarfile.open(tmp_path / "a.tar") as tar:
        tar.extractall(tmp_path / "python", filter="data")
    assert (tmp_path / "python" / str(cid) / "in" / "big").read_bytes() == CONTENT


async def test_the_same_content_is_the_same_tar(env: StorageEnv) -> None:
    cid = await kept(env, V1, {"b": b"2", "a": b"1"})
    first = await packed(env, cid)
    assert first == await packed(env, cid)
    with tarfile.open(fileobj=io.BytesIO(first)) as tar:
        members = tar.getmembers()
    assert [(one.name, one.mode) for one in members] == [(f"{cid}", 0o755), (f"{cid}/a", 0o644), (f"{cid}/b", 0o644)]
    assert {(one.uid, one.gid, one.uname, one.gname, one.mtime) for one in members} == {(0, 0, "", "", 0)}


@pytest.mark.parametrize("profile", [V1, V0], ids=["v1", "v0"])
async def test_modes_and_links_are_unpacked(env: StorageEnv, profile: ImportProfile, tmp_path: Path) -> None:
    long = "/".join(["n" * 100] * 3)
    targets = {"up": Path("../run.sh"), "down": Path("empty"), "far": Path(long), "top": Path("..")}
    async with env.content.receive(profile) as pack:
        await pack.write(b"#!/bin/sh\n")
        script = entry("run.sh", await pack.end_file(0o104751))
        links = [entry(name, pack.add_link(f"./{target}")) for name, target in targets.items()]
        inside = pack.add_folder([entry("empty", pack.add_folder([], 0o700)), *links])
        folder = pack.add_folder([script, entry("in", inside)], 0o750)
        hold = PackReference(pack.pack_id, "file/1", env.tenant_id, ContentNetwork.PRIVATE)
        await pack.commit(lambda connection: service.hold_pack(connection, hold))
    (tmp_path / "a.tar").write_bytes(await packed(env, folder.cid))
    done = subprocess.run(["tar", "xpf", "a.tar"], cwd=tmp_path, capture_output=True, check=True)  # GNU tar
    assert done.stderr == b""
    with tarfile.open(tmp_path / "a.tar") as tar:
        tar.extractall(tmp_path / "python", filter="data")
    for top in (tmp_path / str(folder.cid), tmp_path / "python" / str(folder.cid)):
        assert {name: (top / "in" / name).readlink() for name in targets} == targets
        assert (top / "in" / "up").read_bytes() == b"#!/bin/sh\n"
    modes = {path: (tmp_path / str(folder.cid) / path).stat().st_mode & 0o7777 for path in ("", "run.sh", "in/empty")}
    assert modes == {"": 0o750, "run.sh": 0o751, "in/empty": 0o700}  # no setuid


@pytest.mark.parametrize("data", [b"", b"small", CONTENT], ids=["empty", "small", "large"])
@EVERY_PROFILE
async def test_a_file_goes_out_by_its_cid(env: StorageEnv, profile: ImportProfile, data: bytes) -> None:
    _, (tree,) = await env.keep(data, profile=profile)
    assert unpacked(await packed(env, tree.cid)) == {str(tree.cid): data}


async def test_a_folder_in_many_parts_goes_out_whole(env: StorageEnv) -> None:
    names = [f"{number}-{'x' * 100}" for number in range(2000)]
    cid = await kept(env, V1, dict.fromkeys(names, b"same"))
    assert (await env.reader.stat(env.scope, cid)).kind is UnixfsKind.SHARD
    found = unpacked(await packed(env, cid))
    assert found == {str(cid): None} | {f"{cid}/{name}": b"same" for name in names}


async def test_it_goes_out_in_small_pieces(env: StorageEnv) -> None:
    cid = await kept(env, V1, {"a": CONTENT, "b": CONTENT})
    sizes = [len(piece) async for piece in (await made(env, cid)).stream()]
    assert max(sizes) <= V1.chunk
    assert sum(sizes) > 2 * len(CONTENT)


async def test_content_in_cids_is_content(env: StorageEnv) -> None:
    cid = await hostile_folder(env, [PBLink(Cid(1, RAW, IDENTITY, b"tiny"), "a", 4), PBLink(LEAF, "b", 1)])
    assert unpacked(await packed(env, cid)) == {str(cid): None, f"{cid}/a": b"tiny", f"{cid}/b": b"x"}


# Malicious folders

NAMES = [
    "",
    ".",
    "..",
    "/etc/passwd",
    "../x",
    "a/../../x",
    "a/b",
    "a\0b",
    "\0",
    "..\\x",
    "C:\\x",
    "\\\\host\\x",
    "n" * 256,
]


@pytest.mark.parametrize("name", NAMES)
async def test_no_name_leads_elsewhere(env: StorageEnv, name: str) -> None:
    cid = await hostile_folder(env, [PBLink(LEAF, "before", 1), PBLink(LEAF, name, 1)])
    with pytest.raises(NotArchivable):
        await (await made(env, cid)).check()
    out = bytearray()
    with pytest.raises(NotArchivable):  # nor without the check before
        await sent(await made(env, cid), out)
    assert list(unpacked(bytes(out) + bytes(1024))) == [str(cid), f"{cid}/before"]


async def test_no_name_is_there_twice(env: StorageEnv) -> None:
    cid = await hostile_folder(env, [PBLink(LEAF, "a", 1), PBLink(LEAF, "b", 1), PBLink(LEAF, "a", 1)])
    with pytest.raises(NotArchivable):
        await (await made(env, cid)).check()


async def test_no_name_hides_in_a_shard(env: StorageEnv) -> None:
    node = dagpb.encode_node([PBLink(LEAF, "00../x", 1)], UnixfsData(UnixfsKind.SHARD, b"\1", hash=0x22, fanout=256))
    cid = Cid.for_block(DAG_PB, node)
    await take(env, encode_car([cid], [(cid, node), (LEAF, b"x")]))
    with pytest.raises(NotArchivable):
        await (await made(env, cid)).check()


@pytest.mark.parametrize(
    "target",
    [
        *(b"", b"/etc/passwd", b"../..", b"../../x", b"x/../../y", b"x/..", b"a\0b", b"..\\x", b"\xff", b"n" * 256),
        b"n/" * 2049,
    ],
)
async def test_no_link_leads_outside(env: StorageEnv, target: bytes) -> None:
    """A name in a target may be another link, so `..` behind it may lead anywhere."""
    async with env.content.receive(V1) as pack:
        inside = pack.add_folder([entry("link", pack.add_link(target))])
        folder = pack.add_folder([entry("before", pack.add_link(b"in")), entry("in", inside)])
        hold = PackReference(pack.pack_id, "file/1", env.tenant_id, ContentNetwork.PRIVATE)
        await pack.commit(lambda connection: service.hold_pack(connection, hold))
    with pytest.raises(NotArchivable):
        await (await made(env, folder.cid)).check()
    out = bytearray()
    with pytest.raises(NotArchivable):  # nor without the check before
        await sent(await made(env, folder.cid), out)
    assert list(unpacked(bytes(out) + bytes(1024))) == [
        str(folder.cid),
        *(f"{folder.cid}/{n}" for n in ("before", "in")),
    ]


async def test_a_link_alone_does_not_go_out(env: StorageEnv) -> None:
    target = Cid(1, DAG_PB, IDENTITY, dagpb.encode_node([], UnixfsData(UnixfsKind.SYMLINK, b"x")))
    with pytest.raises(NotArchivable):
        await (await made(env, target)).check()


async def nested_folders(env: StorageEnv, height: int, names: Sequence[str]) -> Cid:
    """Build nested folders; each has the next one under each of these names."""
    blocks: Blocks = [(LEAF, b"x")]
    for _ in range(height):
        below = blocks[-1][0]
        node = dagpb.encode_node([PBLink(below, name, 1) for name in names], UnixfsData(UnixfsKind.DIRECTORY))
        blocks.append((Cid.for_block(DAG_PB, node), node))
    await take(env, encode_car([blocks[-1][0]], blocks))
    return blocks[-1][0]


@pytest.mark.parametrize(
    ("height", "names", "problem"),
    [(66, ["a"], TooDeep), (20, ["n" * 255], NotArchivable), (12, ["a", "b"], TooManyArchiveMembers)],
    ids=["deep", "long", "wide"],
)
async def test_it_is_bounded(
    env: StorageEnv, monkeypatch: pytest.MonkeyPatch, height: int, names: list[str], problem: type[Problem]
) -> None:
    monkeypatch.setattr(tar_archive, "MAX_MEMBERS", 1000)
    with pytest.raises(problem):
        await (await made(env, await nested_folders(env, height, names))).check()


@pytest.mark.parametrize(("bound", "value"), [("CHECKED_MEMBERS", 100), ("CHECK_SECONDS", 0.0)])
async def test_the_first_byte_does_not_wait_for_a_walk_of_everything(
    env: StorageEnv, monkeypatch: pytest.MonkeyPatch, bound: str, value: float
) -> None:
    monkeypatch.setattr(tar_archive, bound, value)
    monkeypatch.setattr(tar_archive, "MAX_MEMBERS", 1000)
    tar, stat, stats = await made(env, await nested_folders(env, 12, ["a", "b"])), env.reader.stat, list[Cid]()

    def count_stat(scope: ContentScope, cid: Cid) -> Coroutine[None, None, ContentStat]:
        stats.append(cid)
        return stat(scope, cid)

    monkeypatch.setattr(env.reader, "stat", count_stat)
    await tar.check()
    assert len(stats) <= 100
    with pytest.raises(TooManyArchiveMembers):
        await sent(tar, bytearray())
    assert len(stats) <= 1200


async def test_damage_ends_it(env: StorageEnv) -> None:
    pack, (tree,) = await env.keep(CONTENT)
    env.damage(pack, -1)
    tar = await made(env, tree.cid)
    await tar.check()
    out = bytearray()
    with pytest.raises(ContentDamaged):
        await sent(tar, out)
    with pytest.raises(tarfile.ReadError):  # readers see that it is incomplete
        unpacked(bytes(out))
