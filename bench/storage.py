"""Storage without HTTP: import, commit, verified read, and many small files, compared with SHA-256 of the file."""

import hashlib
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from functools import partial
from pathlib import Path

from bench.row import Row
from bench.timing import measure_seconds, take_turns
from roost.core.db import Database
from roost.migrations import upgrade_database
from roost.storage.content import service
from roost.storage.content.model import ContentNetwork, PackReference
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.importer import UnixfsImporter
from roost.storage.content.unixfs.profile import PROFILES, V1, ImportProfile
from tests.storage.storage_env import StorageEnv, entry, open_storage_env

_SIZE = 1024**3
_PIECE = 1024**2
_ROUNDS = 3
_SMALL = 3000
_MB = 1e6
_REFERENCE = "sha256 of the same file"
_READ = "Each piece is read, hashed and handed on by Python, which looks up its place; the reference reads and hashes."


async def run(folder: Path) -> AsyncGenerator[Row]:
    file = folder / "file"
    block = hashlib.shake_128(b"bench").digest(64 * _PIECE)
    with file.open("wb") as out:
        out.writelines(block for _ in range(_SIZE // len(block)))
    profiles = list(PROFILES.items())
    actions = [partial(_sha256, file), *(partial(_import, file, profile) for _, profile in profiles)]
    hashed, *imported = take_turns(*(partial(_speed, action) for action in actions), runs=_ROUNDS)
    for (name, profile), speeds in zip(profiles, imported, strict=True):
        goal = ">= 0.9 x" if profile.raw else ">= 0.7 x"
        yield Row(f"importer, 1 GiB, {name}", speeds, "MB/s", _REFERENCE, hashed, goal)
    db = Database(f"sqlite:///{folder / 'roost.db'}")
    try:
        upgrade_database(db)
        env = open_storage_env(db, folder)
        measured = [await _measure_file(env, file, number) for number in range(_ROUNDS)]
        hashed, wrote, read = zip(*measured, strict=True)
        yield Row("receive and commit, 1 GiB, durable, v1", wrote, "MB/s", _REFERENCE, hashed, ">= 0.45 x")
        yield Row("verified read, 1 GiB, v1", read, "MB/s", _REFERENCE, hashed, ">= 0.5 x", shortfall=_READ)
        began = time.perf_counter()
        await _store_small_files(env)
        took = (time.perf_counter() - began) * 1000
        yield Row(f"receive and commit a folder of {_SMALL:,} small files", took, "ms", goal="<= 2000 ms")
    finally:
        db.close()


async def _measure_file(env: StorageEnv, file: Path, number: int) -> tuple[float, float, float]:
    """Return the MB/s of SHA-256, of a durable write and of a verified read."""
    hashed = _speed(partial(_sha256, file))
    began = time.perf_counter()
    cid = await _store_file(env, file, f"bench/{number}")
    wrote = _SIZE / _MB / (time.perf_counter() - began)
    stat = await env.reader.stat(env.scope, cid)
    began = time.perf_counter()
    async for _ in env.reader.stream_file(env.scope, stat):
        pass
    return hashed, wrote, _SIZE / _MB / (time.perf_counter() - began)


def _speed(action: Callable[[], object]) -> float:
    return _SIZE / _MB / measure_seconds(action)


async def _store_file(env: StorageEnv, file: Path, holder: str) -> Cid:
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
