"""Attempts to vectorize: progress, retries, deletion and death in the middle, on both databases."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest
import sqlalchemy as sa

from roost import work
from roost.core.db import Connection, Database
from roost.drivers.blob.contract import BlobStoreFailed
from roost.drivers.embedding.contract import EmbeddingFailed, EmbeddingUnavailable
from roost.drivers.embedding.fake import FakeEmbeddingModel
from roost.drivers.text_extractor.contract import DocumentTooLarge, ExtractionUnavailable, TooManyDocuments
from roost.storage.content.model import ContentNetwork
from roost.storage.files.model import File
from roost.storage.vectors import indexing
from roost.storage.vectors.model import PLAN_CHUNKS, VECTORIZE, VectorizationFailed, VectorState
from tests.storage.storage_env import StorageEnv
from tests.storage.vectors.vector_env import VectorEnv, open_vector_env

LONG = "\n\n".join(f"Chapter {number}. " + "filler " * 100 for number in range(150))
"""Three segments."""


class SteppedModel(FakeEmbeddingModel):
    """Model that embeds `allowed` segments and then waits; queries, which are single texts, never wait."""

    def __init__(self) -> None:
        super().__init__()
        self.allowed = asyncio.Semaphore(0)
        self.error: Exception | None = None

    async def embed_texts(self, texts: Sequence[str]) -> Sequence[bytes]:
        if self.error is not None:
            raise self.error
        if len(texts) > 1:
            await self.allowed.acquire()
        return await super().embed_texts(texts)

    def allow(self, segments: int = 1000) -> None:
        for _ in range(segments):
            self.allowed.release()


@pytest.fixture
def model() -> SteppedModel:
    return SteppedModel()


@pytest.fixture
async def stepped(database: Database, env: StorageEnv, model: SteppedModel) -> AsyncIterator[VectorEnv]:
    async with open_vector_env(database, env, model=model) as opened:
        yield opened


async def request(env: VectorEnv, text: str = LONG) -> File:
    file = await env.file(text, await env.group())
    await env.vectors.vectorize(env.caller, file.id, wait=0)
    return file


async def until_done(env: VectorEnv, file: File, chunks: int) -> None:
    async with asyncio.timeout(30):
        while (found := (await env.vectors.get(env.caller, file.id)).vectors) is None or found.chunks_done < chunks:
            await asyncio.sleep(0.01)


async def until_idle(env: VectorEnv) -> None:
    def count(connection: Connection) -> int:
        states = (work.OperationState.PENDING, work.OperationState.RUNNING)
        return work.count_operations(connection, VECTORIZE, f"vectors/{env.storage.tenant_id}", *states)

    async with asyncio.timeout(30):
        while await env.storage.db.read(count):
            await asyncio.sleep(0.01)


async def test_a_search_sees_all_chunks_of_a_file_or_none(stepped: VectorEnv, model: SteppedModel) -> None:
    file = await request(stepped)
    assert file.metadata.group_id is not None
    model.allow(2)
    await until_done(stepped, file, 128)
    shown = (await stepped.vectors.get(stepped.caller, file.id)).vectors
    assert shown is not None
    assert (shown.state, shown.chunks_done) == (VectorState.INDEXING, 128)
    assert shown.chunks == 150
    assert (await stepped.vectors.query(stepped.caller, file.metadata.group_id, "chapter 7")).matches == []
    model.allow()
    await stepped.until(file, VectorState.INDEXED)
    assert (await stepped.vectors.query(stepped.caller, file.metadata.group_id, "chapter 7")).matches


@pytest.mark.parametrize("is_whole_file", [True, False])
async def test_deletion_in_the_middle_leaves_no_row(
    stepped: VectorEnv, model: SteppedModel, *, is_whole_file: bool
) -> None:
    """Case I10."""
    file = await request(stepped)
    model.allow(1)
    await until_done(stepped, file, 64)
    if is_whole_file:
        await stepped.files.delete(file.tenant_id, ContentNetwork.PRIVATE, file.id)
    else:
        await stepped.vectors.delete(file.tenant_id, file.id)
    model.allow()
    await until_idle(stepped)
    assert set((await stepped.count_rows()).values()) == {0}


async def test_a_new_request_after_a_deletion_is_not_disturbed_by_the_old_attempt(
    stepped: VectorEnv, model: SteppedModel
) -> None:
    file = await request(stepped)
    model.allow(1)
    await until_done(stepped, file, 64)
    await stepped.vectors.delete(file.tenant_id, file.id)
    await stepped.vectors.vectorize(stepped.caller, file.id, wait=0)
    model.allow()
    await stepped.until(file, VectorState.INDEXED)
    await until_idle(stepped)
    found = (await stepped.vectors.get(stepped.caller, file.id)).vectors
    assert found is not None
    assert (await stepped.count_rows())["vector_segments"] == -(-found.chunks // 64)


async def test_another_process_finishes_what_one_began(
    database: Database, env: StorageEnv, model: SteppedModel
) -> None:
    async with open_vector_env(database, env, model=model) as first:
        file = await request(first)
        model.allow(2)
        await until_done(first, file, 128)
    async with open_vector_env(database, env) as second:
        await second.until(file, VectorState.INDEXED)
        found = (await second.vectors.get(second.caller, file.id)).vectors
        assert found is not None
        counted = await second.count_rows()
        assert counted["vector_segments"] == -(-found.chunks // 64)
        assert counted.get("chunk_vectors", found.chunks) == found.chunks


@pytest.mark.parametrize("error", [EmbeddingUnavailable, ExtractionUnavailable, TooManyDocuments, BlobStoreFailed])
async def test_a_temporary_failure_is_retried_and_shown(
    stepped: VectorEnv, model: SteppedModel, error: type[Exception]
) -> None:
    model.error = error()
    file = await request(stepped)
    async with asyncio.timeout(10):
        while (found := (await stepped.vectors.get(stepped.caller, file.id)).vectors) is None or not found.reason:
            await asyncio.sleep(0.01)
    assert (found.state, found.reason) == (VectorState.QUEUED, str(error()))
    model.error = None
    model.allow()
    await stepped.until(file, VectorState.INDEXED)
    found = (await stepped.vectors.get(stepped.caller, file.id)).vectors
    assert found is not None
    assert found.reason is None


async def test_retries_end_in_failure(stepped: VectorEnv, model: SteppedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "RETRIES", 0)
    model.error = EmbeddingUnavailable()
    file = await request(stepped)
    await stepped.until(file, VectorState.FAILED)
    with pytest.raises(VectorizationFailed, match="The embedding model is not available"):
        await stepped.vectors.vectorize(stepped.caller, file.id)


@pytest.mark.parametrize(
    ("error", "reason"),
    [(EmbeddingFailed("The model refused"), "The model refused"), (DocumentTooLarge(), "The document is too large")],
)
async def test_a_final_failure_is_shown_at_once(
    stepped: VectorEnv, model: SteppedModel, error: Exception, reason: str
) -> None:
    model.error = error
    with pytest.raises(VectorizationFailed, match=reason):
        await stepped.vectors.vectorize(stepped.caller, (await stepped.file(LONG)).id)


async def test_an_error_of_ours_is_retried_and_does_not_show_details(
    stepped: VectorEnv, model: SteppedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "RETRIES", 0)
    model.error = ValueError("/secret/path")
    file = await request(stepped)
    await stepped.until(file, VectorState.FAILED)
    found = (await stepped.vectors.get(stepped.caller, file.id)).vectors
    assert found is not None
    assert found.reason == "Internal error"


async def test_a_request_replaces_one_whose_operation_is_gone(stepped: VectorEnv, model: SteppedModel) -> None:
    """No crash leaves such a row; a handler that cancels itself could."""
    file = await request(stepped)
    delete = sa.text("DELETE FROM operations")
    await stepped.storage.db.write(lambda connection: connection.execute(delete))
    model.allow()
    assert (await stepped.vectors.vectorize(stepped.caller, file.id)).state is VectorState.INDEXED


async def test_a_plan_has_a_limit_of_chunks(
    stepped: VectorEnv, model: SteppedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "PLAN_CHUNKS", dict.fromkeys(PLAN_CHUNKS, 2))
    model.allow()
    done = [await stepped.file(f"text {number}") for number in range(2)]
    for file in done:
        await stepped.vectors.vectorize(stepped.caller, file.id)
    with pytest.raises(VectorizationFailed, match="The vectors of your plan are full: it allows 2 chunks"):
        await stepped.vectors.vectorize(stepped.caller, (await stepped.file("text 3")).id)
    await stepped.vectors.delete(stepped.storage.tenant_id, done[0].id)
    await stepped.vectors.vectorize(stepped.caller, (await stepped.file("text 4")).id)


async def test_a_text_has_a_limit_of_chunks(
    stepped: VectorEnv, model: SteppedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "CHUNKS_LIMIT", 3)
    model.allow()
    with pytest.raises(VectorizationFailed, match="The text has more than 3 chunks of at most 800 characters"):
        await stepped.vectors.vectorize(stepped.caller, (await stepped.file(LONG)).id)
