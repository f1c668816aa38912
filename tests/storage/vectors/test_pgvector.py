"""An extension that comes, goes and comes again."""

import numpy as np
import pytest
import sqlalchemy as sa

from roost.core.db import Connection
from roost.storage.vectors import store
from roost.storage.vectors.vector_index import PgvectorIndex, SegmentIndex, describe_index, open_vector_index
from tests.storage.storage_env import StorageEnv
from tests.storage.vectors.test_vector_index import IndexEnv, unit_vectors

pytestmark = pytest.mark.parametrize("dialect", [pytest.param("postgresql", marks=pytest.mark.postgres)])


@pytest.fixture
async def index_env(env: StorageEnv) -> IndexEnv:
    opened = IndexEnv(env, SegmentIndex())
    await opened.create_group()
    return opened


async def test_vectors_that_were_stored_without_the_extension_are_converted(index_env: IndexEnv) -> None:
    vectors = unit_vectors(200)
    for name in ("a", "b"):
        await index_env.add(vectors, name)
    before = await index_env.find(vectors[7], 10)
    for _ in range(2):
        index_env.index = open_vector_index(index_env.storage.db)
        assert isinstance(index_env.index, PgvectorIndex)
        after = await index_env.find(vectors[7], 10)
        assert [(one.file_id, one.number) for one in after] == [(one.file_id, one.number) for one in before]
    index_env.index = SegmentIndex()
    assert await index_env.find(vectors[7], 10) == []


async def test_vectors_that_a_dropped_extension_took_are_outdated(
    index_env: IndexEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    db, vectors = index_env.storage.db, unit_vectors(3)
    index_env.index = open_vector_index(db)
    lost = await index_env.add(vectors, "a")
    await db.write(lambda connection: connection.execute(sa.text("DROP EXTENSION vector CASCADE")))
    monkeypatch.setattr(store, "_PGVECTOR", sa.text("CREATE EXTENSION no_such_extension"))
    index_env.index = open_vector_index(db)
    assert isinstance(index_env.index, SegmentIndex)
    assert await db.read(describe_index) == (
        False,
        "PostgreSQL lacks the extension `vector`, so that queries read more (docs/guides/vectors.md)",
    )
    kept = await index_env.add(vectors, "b")
    assert {one.file_id for one in await index_env.find(vectors[0], 10)} == {kept}

    def read_models(connection: Connection) -> dict[str, str]:
        return {row.file_id: row.model for row in store.list_file_vectors(connection, [lost, kept]).values()}

    assert await db.read(read_models) == {lost: "", kept: "m"}
    monkeypatch.undo()
    index_env.index = open_vector_index(db)
    assert isinstance(index_env.index, PgvectorIndex)
    assert await db.read(describe_index) == (True, "vectors are compared by pgvector")
    assert {one.file_id for one in await index_env.find(vectors[0], 10)} == {kept}
    assert np.isclose((await index_env.find(vectors[0], 1))[0].score, 1)
