"""Storage without HTTP: import, commit, verified read, and many small files, compared with SHA-256 of the file."""

import asyncio
import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.table import Row
from roost.core.db import Database
from roost.migrations import upgrade_database
from roost.storage.content import service
from roost.storage.content.model import ContentNetwork, PackReference
from roost.storage.unixfs.importer import UnixfsImporter
from roost.storage.unixfs.profile import PROFILES, V1, ImportProfile
from tests.storage.storage_env import StorageEnv, entry, open_storage_env

_SIZE = 1024**3
_PIECE = 1024**2
_ROUNDS = 3
_SMALL = 3000
_MB = 1e6


def run(folder: Path) -> Sequence[Row]:
    file = folder / "file"
    block = hashlib.shake_128(b"bench").digest(64 * _PIECE)
    with file.open("wb") as out:
        out.writelines(block for _ in range(_SIZE // len(block)))
    limit = _speed(lambda: _sha256(file))
    rows = [
        Row(
            f"importer, 1 GiB, {name}",
            _speed(lambda p=profile: _import(file, p)),
            "MB/s",
            *_hash_reference(limit),
            goal,
        )
        for name, profile in PROFILES.items()
        for goal in (">= 90 %" if profile.raw else ">= 70 %",)
    ]
    db = Database(f"sqlite:///{folder / 'roost.db'}")
    try:
        upgrade_database(db)
        return rows + asyncio.run(_measure_content(open_storage_env(db, folder), file, limit))
    finally:
        db.close()


async def _measure_content(env: StorageEnv, file: Path, limit: float) -> list[Row]:
    wrote, read = 0.0, 0.0
    for number in range(_ROUNDS):
        began = time.perf_counter()
        cid = await _store_file(env, file, f"bench/{number}")
        wrote = max(wrote, _SIZE / _MB / (time.perf_counter() - began))
        stat = await env.reader.stat(env.scope, cid)
        began = time.perf_counter()
        async for _ in env.reader.stream_file(env.scope, stat):
            pass
        read = max(read, _SIZE / _MB / (time.perf_counter() - began))
    began = time.perf_counter()
    await _store_small_files(env)
    small = (time.perf_counter() - began) * 1000
    return [
        Row("receive and commit, 1 GiB, durable, v1", wrote, "MB/s", *_hash_reference(limit), ">= 45 %"),
        Row("verified read, 1 GiB, v1", read, "MB/s", *_hash_reference(limit), ">= 50 %"),
        Row(f"receive and commit a folder of {_SMALL:,} small files", small, "ms", "limit", 2000.0, "<= 2 s"),
    ]


async def _store_file(env: StorageEnv, file: Path, holder: str) -> object:
    async with env.content.receive(V1) as pack:
        for piece in _read_pieces(file):
            await pack.write(piece)
        tree = await pack.end_file()
        reference = PackReference(pack.pack_id, holder, env.tenant_id, ContentNetwork.PRIVATE)
        await pack.commit(lambda connection: service.hold_pack(connection, reference))
    return tree.cid


async def _store_small_files(env: StorageEnv) -> None:
    async with env.content.receive(V1) as pack:
        entries = []
        for number in range(_SMALL):
            await pack.write(f"the content of small file {number}".encode() * 30)
            entries.append(entry(f"{number}.txt", await pack.end_file()))
        pack.add_folder(entries)
        reference = PackReference(pack.pack_id, "bench/small", env.tenant_id, ContentNetwork.PRIVATE)
        await pack.commit(lambda connection: service.hold_pack(connection, reference))


def _import(file: Path, profile: ImportProfile) -> None:
    importer = UnixfsImporter(profile)
    for piece in _read_pieces(file):
        importer.update(piece)
    importer.finish()


def _sha256(file: Path) -> None:
    digest = hashlib.sha256()
    for piece in _read_pieces(file):
        digest.update(piece)


def _read_pieces(file: Path) -> Iterator[bytes]:
    with file.open("rb") as source:
        while piece := source.read(_PIECE):
            yield piece


def _speed(action: Callable[[], None]) -> float:
    """Return MB/s of the file, the best of some rounds."""
    best = 0.0
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        action()
        best = max(best, _SIZE / _MB / (time.perf_counter() - began))
    return best


def _hash_reference(limit: float) -> tuple[str, float]:
    return "sha256 of the same file", limit
