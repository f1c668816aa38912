"""CARs built block by block, as by another program, and received."""

from collections.abc import Iterable, Sequence

import pytest

from roost.storage.content import service
from roost.storage.content.car_receiver import CarContents
from roost.storage.content.model import ContentNetwork, PackReference
from roost.storage.content.unixfs import car, dagpb
from roost.storage.content.unixfs.cid import DAG_PB, RAW, Cid
from roost.storage.content.unixfs.directory import build_folder
from roost.storage.content.unixfs.importer import DagTree, UnixfsImporter
from roost.storage.content.unixfs.profile import PROFILES, ImportProfile
from tests.storage.storage_env import CONTENT, StorageEnv, entry

Blocks = list[tuple[Cid, bytes]]
EVERY_PROFILE = pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)


def encode_car(roots: Sequence[Cid], blocks: Iterable[tuple[Cid, bytes]]) -> bytes:
    return car.encode_header(roots) + b"".join(car.encode_frame(cid, len(block)) + block for cid, block in blocks)


def blocks_of(profile: ImportProfile, data: bytes) -> tuple[DagTree, Blocks]:
    importer = UnixfsImporter(profile)
    importer.update(data)
    tree = importer.finish()
    found: Blocks = []
    for number in range(len(tree.leaves) // 32):
        leaf = data[number * profile.chunk : (number + 1) * profile.chunk]
        before, after = (b"", b"") if profile.raw else dagpb.leaf_frame(len(leaf))
        found.append(
            (
                Cid.for_block(RAW if profile.raw else DAG_PB, before + leaf + after, profile.version),
                before + leaf + after,
            )
        )
    return tree, found + [(node.cid, node.data) for node in tree.nodes]


def folder_of_files(profile: ImportProfile, count: int = 2) -> tuple[Cid, Blocks]:
    """Build a folder with `in/big` and `count` small files."""
    big, blocks = blocks_of(profile, CONTENT)
    small, more = blocks_of(profile, b"small")
    inner = build_folder(profile, [entry("big", big)])
    outer = build_folder(profile, [entry("in", inner), *(entry(f"{n}".rjust(80, "n"), small) for n in range(count))])
    nodes = [(node.cid, node.data) for node in (*inner.nodes, *outer.nodes)]
    return outer.cid, [*blocks, *more, *nodes]


async def take(env: StorageEnv, data: bytes, step: int = 100_000) -> CarContents:
    async with env.content.receive_car() as pack:
        for at in range(0, len(data), step):
            await pack.write(data[at : at + step])
        kept = await pack.finish()
        hold = PackReference(pack.pack_id, "file/car", env.tenant_id, ContentNetwork.PRIVATE)
        await pack.commit(lambda connection: service.hold_pack(connection, hold))
    return kept
