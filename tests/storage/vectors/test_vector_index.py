"""The suite of the contract `VectorIndex`, over rows with matrices on both databases and over the extension."""

from collections.abc import Sequence

import numpy as np
import pytest

from roost.core import clock
from roost.core.db import Connection, Database
from roost.storage.content.model import ContentNetwork
from roost.storage.files.groups.service import GroupService
from roost.storage.files.model import FileMetadata
from roost.storage.files.service import FileService, select_group_files
from roost.storage.vectors import store
from roost.storage.vectors.model import SEGMENT_CHUNKS, FileVectors, NearChunk, TextChunk, VectorSegment, VectorState
from roost.storage.vectors.vector_index import PgvectorIndex, SegmentIndex, VectorIndex, open_vector_index
from tests.storage.storage_env import StorageEnv

DIMENSION = 16
pytestmark = pytest.mark.parametrize(
    ("dialect", "kind"),
    [
        ("sqlite", SegmentIndex),
        pytest.param("postgresql", SegmentIndex, marks=pytest.mark.postgres),
        pytest.param("postgresql", PgvectorIndex, marks=pytest.mark.postgres),
    ],
)


def unit_vectors(count: int, seed: int = 1) -> np.ndarray:
    numbers = np.random.default_rng(seed).standard_normal((count, DIMENSION)).astype("<f4")
    return numbers / np.linalg.norm(numbers, axis=1, keepdims=True)


class IndexEnv:
    """Files with vectors, and a group for them."""

    def __init__(self, storage: StorageEnv, index: VectorIndex) -> None:
        self.storage, self.index = storage, index
        self.files = FileService(storage.db)
        self.group = ""

    async def create_group(self) -> None:
        groups = GroupService(self.storage.db, self.files)
        self.group = (await groups.create(self.storage.tenant_id, ContentNetwork.PRIVATE, "g", is_public=False)).id

    async def add(self, vectors: np.ndarray, name: str, *, is_grouped: bool = True, model: str = "m") -> str:
        """Add a file with a chunk for each vector; return its id."""
        note = FileMetadata(name, group_id=self.group if is_grouped else None)
        file = await self.storage.file(name.encode(), note, files=self.files)
        state, now = VectorState.INDEXED, clock.utc_now()
        count, dimension = vectors.shape
        row = FileVectors(file.id, file.tenant_id, "o", state, model, dimension, count, count, None, now, now)

        def write(connection: Connection) -> None:
            store.replace_file_vectors(connection, row)
            for at in range(0, len(vectors), SEGMENT_CHUNKS):
                part = [vector.tobytes() for vector in vectors[at : at + SEGMENT_CHUNKS]]
                chunks = [TextChunk(number, number + 1, f"{name} {number}") for number in range(at, at + len(part))]
                self.index.add_segment(connection, VectorSegment(file.id, at // SEGMENT_CHUNKS, chunks, part))

        await self.storage.db.write(write)
        return file.id

    async def find(self, query: np.ndarray, limit: int) -> Sequence[NearChunk]:
        def read(connection: Connection) -> Sequence[NearChunk]:
            files = store.select_indexed(select_group_files(self.storage.tenant_id, self.group), "m", DIMENSION)
            return self.index.find_nearest(connection, files, query.tobytes(), limit)

        return await self.storage.db.read_long(read)


@pytest.fixture
async def index_env(kind: type[VectorIndex], database: Database, env: StorageEnv) -> IndexEnv:
    index: VectorIndex = SegmentIndex()
    if kind is PgvectorIndex:
        index = open_vector_index(database)
        assert isinstance(index, PgvectorIndex)
    opened = IndexEnv(env, index)
    await opened.create_group()
    return opened


async def test_all_nearest_chunks_are_found_in_their_order(index_env: IndexEnv) -> None:
    """Recall 1.0, against a comparison of all vectors at once."""
    vectors = {await index_env.add(part, f"f{seed}"): part for seed in range(5) for part in [unit_vectors(150, seed)]}
    await index_env.add(unit_vectors(10, 9), "elsewhere", is_grouped=False)
    for seed in range(100, 110):
        query = unit_vectors(1, seed)[0]
        every = [
            (float(score), file_id, number)
            for file_id, part in vectors.items()
            for number, score in enumerate(part @ query)
        ]
        expected = sorted(every, key=lambda one: -one[0])[:10]
        found = await index_env.find(query, 10)
        assert [(one.file_id, one.number) for one in found] == [one[1:] for one in expected]
        assert [one.score for one in found] == pytest.approx([one[0] for one in expected], abs=1e-5)


async def test_equal_ones_are_in_the_order_of_files_and_numbers(index_env: IndexEnv) -> None:
    same = np.repeat(unit_vectors(1), 3, axis=0)
    ids = sorted([await index_env.add(same, "a"), await index_env.add(same, "b")])
    found = await index_env.find(same[0], 4)
    assert [(one.file_id, one.number) for one in found] == [(ids[0], 0), (ids[0], 1), (ids[0], 2), (ids[1], 0)]


async def test_texts_belong_to_the_found_chunks(index_env: IndexEnv) -> None:
    vectors = unit_vectors(130)
    await index_env.add(vectors, "f")
    for number in (0, 63, 64, 129):
        found = await index_env.find(vectors[number], 3)
        texts = await index_env.storage.db.read(lambda connection, found=found: store.read_chunks(connection, found))
        assert texts[0] == TextChunk(number, number + 1, f"f {number}")
        assert [text.begin for text in texts] == [one.number for one in found]


@pytest.mark.parametrize("model", ["m", "n"])
async def test_others_may_have_another_dimension(index_env: IndexEnv, model: str) -> None:
    vectors = unit_vectors(3)
    await index_env.add(np.repeat(vectors, 2, axis=1), "wide", model=model)
    mine = await index_env.add(vectors, "f")
    assert {one.file_id for one in await index_env.find(vectors[0], 10)} == {mine}


async def test_nothing_is_found_in_nothing(index_env: IndexEnv) -> None:
    assert await index_env.find(unit_vectors(1)[0], 10) == []


async def test_segments_are_cleared_or_deleted_with_the_row_of_the_file(index_env: IndexEnv) -> None:
    vectors, db = unit_vectors(70), index_env.storage.db
    one, two = await index_env.add(vectors, "a"), await index_env.add(vectors, "b")
    await db.write(lambda connection: index_env.index.clear_segments(connection, one))
    assert {found.file_id for found in await index_env.find(vectors[0], 100)} == {two}
    await db.write(lambda connection: store.delete_file_vectors(connection, two))
    assert await index_env.find(vectors[0], 100) == []
