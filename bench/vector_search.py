"""Search in 2,000 of 100,000 chunks and in all of them, and deletion of a file's vectors, on both databases."""

import itertools
import statistics
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import sqlalchemy as sa

from bench.row import Row
from bench.timing import RUNS, median_ms, time_in_turns_async
from roost.core import clock, ids
from roost.core.db import Connection, Database
from roost.drivers.embedding.fake import FakeEmbeddingModel
from roost.identity import tenants
from roost.identity.caller import Caller, CallerKind
from roost.migrations import upgrade_database
from roost.storage.content.model import ContentNetwork
from roost.storage.files import store as files_store
from roost.storage.files.groups.service import GroupService
from roost.storage.files.model import File, FileMetadata
from roost.storage.files.service import FileService
from roost.storage.vectors import store
from roost.storage.vectors.model import FileVectors, TextChunk, VectorSegment, VectorState
from roost.storage.vectors.service import VectorService
from roost.storage.vectors.vector_index import VectorIndex, open_vector_index
from roost.work import OperationWorker
from tests.support.databases import postgres_copy, run_postgres

_GROUPS, _FILES, _CHUNKS, _DIMENSION = 50, 40, 50, 384
_LIMIT = 10
_QUERIES, _ROUNDS_OF_ALL, _DELETIONS = 200, 3, 50
_BARE, _BARE_ROUNDS = "its statement by a bare driver", 20
_STATEMENT = """
    SELECT file_id, number, embedding <=> (SELECT CAST(%s AS vector)) AS distance FROM chunk_vectors
    WHERE file_id IN (SELECT id FROM files {files}) ORDER BY distance, file_id, number LIMIT 10
"""
_GROUP_SHORTFALL = (
    "The bare driver's part is PostgreSQL's. The rest is Python's: four more statements, for group, files, texts and "
    "vectors of other models, and the construction of all five."
)
_SHORTFALL = "PostgreSQL reads and compares each vector: the last reference is its part."
_SQLITE_SHORTFALL = "The codes of all vectors are read from the database; the reference has the vectors in memory."
_TEXT = "The boiler is serviced in May. " * 25


@dataclass(frozen=True)
class _Corpus:
    caller: Caller
    group_ids: Sequence[str]
    file_ids: Sequence[Sequence[str]]
    """The files of each group."""


class _PreparedModel(FakeEmbeddingModel):
    """Model that returns one vector, so that the time of a query is that of its search."""

    vector = b""

    async def embed_texts(self, texts: Sequence[str]) -> Sequence[bytes]:
        return [self.vector for _ in texts]


async def measure_search(folder: Path) -> AsyncGenerator[Row]:
    vectors = _unit_vectors(_GROUPS * _FILES * _CHUNKS, 1).reshape(_GROUPS, _FILES, _CHUNKS, _DIMENSION)
    queries = _unit_vectors(_QUERIES, 2)
    with ExitStack() as stack:
        server = stack.enter_context(run_postgres())
        (folder / "search").mkdir()
        urls = {
            "SQLite": f"sqlite:///{folder / 'search/roost.db'}",
            "PostgreSQL": next(postgres_copy(server, "template0")),
        }
        for name, url in urls.items():
            db = Database(url)
            stack.callback(db.close)
            upgrade_database(db)
            async for row in _measure(name, db, vectors, queries):
                yield row


async def _measure(name: str, db: Database, vectors: np.ndarray, queries: np.ndarray) -> AsyncGenerator[Row]:
    index, model, files = open_vector_index(db), _PreparedModel(), FileService(db)
    corpus = await _fill(db, index, files, vectors)
    await db.write(lambda connection: connection.exec_driver_sql("ANALYZE"))  # the server of tests never does
    service = VectorService(db, OperationWorker(db, owner="bench"), files, model, index)
    group = vectors[7].reshape(-1, _DIMENSION)
    found: list[set[tuple[str, int]]] = []

    own, plain = itertools.cycle(queries), itertools.cycle(queries)

    async def search() -> None:
        query = next(own)
        model.vector = query.tobytes()
        result = await service.query(corpus.caller, corpus.group_ids[7], "text", _LIMIT)
        found.append({(match.file.id, match.chunk.begin) for match in result.matches})

    async def scan() -> None:
        _scan(group, next(plain))

    total, reference = f"{_GROUPS * _FILES * _CHUNKS:,}", "NumPy, in memory"
    took, scanned = await time_in_turns_async(search, scan, rounds=_QUERIES // RUNS, warm=0)
    title = f"search {len(group):,} chunks of {total}, {name}, p50"
    bare = _run_bare(db, queries, f"WHERE group_id = '{corpus.group_ids[7]}'")
    yield Row(title, took, "ms", reference, scanned, "<= 5 ms", bare, _GROUP_SHORTFALL if bare else "")
    numbers = [
        {(corpus.file_ids[7][row // _CHUNKS], row % _CHUNKS) for row in _scan(group, query)} for query in queries
    ]
    recall = statistics.mean(len(mine & exact) / _LIMIT for mine, exact in zip(found, numbers, strict=True))
    yield Row(f"recall of {_LIMIT} results, {name}", recall, "", reference, 1.0, "= 1 x")
    every = vectors.reshape(-1, _DIMENSION)
    files_of_all = store.select_indexed(sa.select(files_store.files.c.id), model.model_id, _DIMENSION)

    async def search_all() -> None:
        query = next(own).tobytes()
        await db.read_long(lambda connection: index.find_nearest(connection, files_of_all, query, _LIMIT))

    async def scan_all() -> None:
        _scan(every, next(plain))

    took, scanned = await time_in_turns_async(search_all, scan_all, rounds=_ROUNDS_OF_ALL)
    title, bare = f"search all {total} chunks, {name}, p50", _run_bare(db, queries)
    yield Row(title, took, "ms", reference, scanned, "<= 50 ms", bare, _SHORTFALL if bare else _SQLITE_SHORTFALL)
    doomed = iter([file_id for group_files in corpus.file_ids[10:12] for file_id in group_files][:_DELETIONS])
    delete, nothing = await time_in_turns_async(
        lambda: service.delete(corpus.caller.tenant_id, next(doomed)),
        lambda: db.write(_touch),
        rounds=_DELETIONS // RUNS,
        warm=0,
    )
    yield Row(f"delete {_CHUNKS} of {total} chunks, {name}, p50", delete, "ms", "a small write", nothing, "<= 5 x")


def _run_bare(db: Database, queries: np.ndarray, files: str = "") -> Mapping[str, float]:
    """Return the milliseconds of the search alone, by the driver of PostgreSQL; SQLite has no vectors of its own."""
    if db.is_sqlite:
        return {}
    texts = itertools.cycle([str(query.tolist()) for query in queries])
    statement = _STATEMENT.format(files=files)
    with db.writer.connect() as connection:
        cursor = connection.connection.cursor()
        return {_BARE: median_ms(lambda: cursor.execute(statement, (next(texts),)).fetchall(), _BARE_ROUNDS)}


def _scan(matrix: np.ndarray, query: np.ndarray) -> Sequence[int]:
    products = matrix @ query
    best = np.argpartition(-products, _LIMIT)[:_LIMIT]
    return best[np.argsort(-products[best])].tolist()


async def _fill(db: Database, index: VectorIndex, files: FileService, vectors: np.ndarray) -> _Corpus:
    tenant_id = await db.write(lambda connection: tenants.ensure_tenant(connection, "bench").id)
    groups = GroupService(db, files)
    group_ids: list[str] = []
    file_ids: list[list[str]] = []
    for group_vectors in vectors:
        group = await groups.create(tenant_id, ContentNetwork.PRIVATE, "bench", is_public=False)
        group_ids.append(group.id)
        add = partial(_add_files, index=index, tenant_id=tenant_id, group_id=group.id, vectors=group_vectors)
        file_ids.append(await db.write(add))
    return _Corpus(Caller(CallerKind.SERVICE, tenant_id), group_ids, file_ids)


def _add_files(
    connection: Connection, *, index: VectorIndex, tenant_id: str, group_id: str, vectors: np.ndarray
) -> list[str]:
    """Add a file with one segment for each matrix."""
    now, added = clock.utc_now(), list[str]()
    for matrix in vectors:
        file_id = ids.new_id()
        metadata = FileMetadata("file.txt", group_id=group_id)
        network = ContentNetwork.PRIVATE
        file = File(file_id, tenant_id, network, f"bafy{file_id}", 1, 1, "text/plain", metadata, now, now)
        files_store.insert_file(connection, file)
        count, dimension = matrix.shape
        state = VectorState.INDEXED
        row = FileVectors(file_id, tenant_id, "o", state, "fake", dimension, count, count, None, now, now)
        store.replace_file_vectors(connection, row)
        chunks = [TextChunk(number, number + len(_TEXT), _TEXT) for number in range(count)]
        index.add_segment(connection, VectorSegment(file_id, 0, chunks, [vector.tobytes() for vector in matrix]))
        added.append(file_id)
    return added


def _touch(connection: Connection) -> None:
    tenants.ensure_tenant(connection, ids.new_id())


def _unit_vectors(count: int, seed: int) -> np.ndarray:
    numbers = np.random.default_rng(seed).standard_normal((count, _DIMENSION)).astype("<f4")
    return numbers / np.linalg.norm(numbers, axis=1, keepdims=True)
