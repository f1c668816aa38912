"""Vectors of files from the request to the search, on both databases."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from roost.core import clock
from roost.core.db import Database
from roost.drivers.embedding.contract import EmbeddingUnavailable
from roost.drivers.embedding.fake import FakeEmbeddingModel
from roost.storage.content.model import ContentNetwork
from roost.storage.files.groups.model import GroupNotFound
from roost.storage.files.model import FileNotFound
from roost.storage.vectors.model import FolderNotVectorized, VectorizationFailed, VectorState
from roost.storage.vectors.service import VectorService
from tests.storage.storage_env import StorageEnv
from tests.storage.vectors.vector_env import PRIVATE, VectorEnv, open_vector_env

TEA, BOILER = "Tea is made with hot water.", "The boiler is serviced in May."
EMPTY: dict[str, int] = dict.fromkeys(
    ("file_vectors", "vector_segments", "vector_chunks", "vector_grants", "chunk_vectors"), 0
)


async def test_a_file_is_found_by_its_text(vector_env: VectorEnv) -> None:
    env, group = vector_env, await vector_env.group()
    tea, boiler = await env.file(TEA, group, name="tea.txt"), await env.file(BOILER, group)
    for file in (tea, boiler):
        assert await env.state(file) is VectorState.NONE
        done = await env.vectors.vectorize(env.caller, file.id)
        assert (done.state, done.file) == (VectorState.INDEXED, file)
        assert done.vectors is not None
        assert (done.vectors.chunks, done.vectors.chunks_done, done.vectors.model) == (1, 1, "fake")
    assert env.extractor.documents == [("tea.txt", "text/plain"), ("n.txt", "text/plain")]
    result = await env.vectors.query(env.caller, group.id, "when is the boiler serviced?", 2)
    assert [match.file.id for match in result.matches] == [boiler.id, tea.id]
    best = result.matches[0]
    assert (best.chunk.text, best.chunk.begin, best.chunk.end, result.outdated) == (BOILER, 0, len(BOILER), 0)
    assert 1 >= best.score > result.matches[1].score
    assert await env.found(group, "boiler", 1) == [BOILER]


async def test_a_long_file_has_many_segments_whose_chunks_are_found(vector_env: VectorEnv) -> None:
    env, group = vector_env, await vector_env.group()
    text = "\n\n".join(
        f"Chapter {number} tells of the word{number}. " + "filler " * 89 + "end." for number in range(150)
    )
    file = await env.file(text, group)
    done = await env.vectors.vectorize(env.caller, file.id)
    assert done.vectors is not None
    assert done.vectors.chunks == done.vectors.chunks_done >= 150
    for number in (0, 63, 64, 149):
        (match,) = (await env.vectors.query(env.caller, group.id, f"word{number} chapter {number}", 1)).matches
        assert f"word{number}." in match.chunk.text
        assert text[match.chunk.begin : match.chunk.end] == match.chunk.text


async def test_only_the_files_of_the_group_are_searched_wherever_they_are_now(vector_env: VectorEnv) -> None:
    env, one, two = vector_env, await vector_env.group("one"), await vector_env.group("two")
    file = await env.file(TEA, one)
    await env.vectors.vectorize(env.caller, file.id)
    assert (await env.found(one, "tea"), await env.found(two, "tea")) == ([TEA], [])
    await env.groups.add_files(env.storage.tenant_id, PRIVATE, two.id, [file.id])
    assert (await env.found(one, "tea"), await env.found(two, "tea")) == ([], [TEA])
    await env.groups.delete(env.storage.tenant_id, PRIVATE, two.id)
    with pytest.raises(GroupNotFound):
        await env.found(two, "tea")
    assert await env.state(file) is VectorState.INDEXED


async def test_public_files_too(vector_env: VectorEnv) -> None:
    env, group = vector_env, await vector_env.group(network=ContentNetwork.PUBLIC)
    file = await env.file(TEA, group, network=ContentNetwork.PUBLIC)
    assert (await env.vectors.vectorize(env.caller, file.id)).state is VectorState.INDEXED
    assert await env.found(group, "tea") == [TEA]


async def test_a_second_request_changes_nothing(vector_env: VectorEnv) -> None:
    env, group = vector_env, await vector_env.group()
    file = await env.file(TEA, group)
    first, *more = await asyncio.gather(*(env.vectors.vectorize(env.caller, file.id) for _ in range(4)))
    again = await env.vectors.vectorize(env.caller, file.id)
    assert [one.vectors for one in (*more, again)] == [first.vectors] * 4
    assert env.model.texts == [TEA]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\0\1\2", "Only text, HTML, PDF, Word, PowerPoint, Excel and OpenDocument text files have text"),
        (b" \n\n ", "The file has no text"),
        (b"", "The file has no text"),
    ],
)
async def test_a_document_without_text_fails_at_once_with_the_reason(
    vector_env: VectorEnv, data: bytes, message: str
) -> None:
    env, file = vector_env, await vector_env.file(data)
    with pytest.raises(VectorizationFailed, match=message):
        await env.vectors.vectorize(env.caller, file.id)
    failed = await env.vectors.get(env.caller, file.id)
    assert failed.state is VectorState.FAILED
    assert failed.vectors is not None
    assert str(failed.vectors.reason).startswith(message)
    with pytest.raises(VectorizationFailed, match=message):  # a new request is a new attempt
        await env.vectors.vectorize(env.caller, file.id)
    await env.vectors.delete(env.storage.tenant_id, file.id)
    assert await env.state(file) is VectorState.NONE


async def test_vectors_of_another_model_are_not_searched_until_they_are_made_again(
    database: Database, env: StorageEnv
) -> None:
    async with open_vector_env(database, env) as older:
        group = await older.group()
        files = [await older.file(TEA, group), await older.file(BOILER, group)]
        for file in files:
            await older.vectors.vectorize(older.caller, file.id)
    async with open_vector_env(database, env, model=FakeEmbeddingModel("newer")) as newer:
        result = await newer.vectors.query(newer.caller, group.id, "tea")
        assert (result.matches, result.outdated) == ([], 2)
        assert await newer.state(files[0]) is VectorState.OUTDATED
        await newer.vectors.vectorize(newer.caller, files[0].id)
        result = await newer.vectors.query(newer.caller, group.id, "tea")
        assert ([match.file.id for match in result.matches], result.outdated) == ([files[0].id], 1)


async def test_a_model_that_changes_its_dimension_makes_vectors_outdated(vector_env: VectorEnv) -> None:
    class WideModel(FakeEmbeddingModel):
        async def embed_texts(self, texts: Sequence[str]) -> Sequence[bytes]:
            return [vector * 2 for vector in await super().embed_texts(texts)]

    env, group = vector_env, await vector_env.group()
    file = await env.file(TEA, group)
    await env.vectors.vectorize(env.caller, file.id)
    service = VectorService(env.storage.db, env.queue, env.files, WideModel(), env.index)
    result = await service.query(env.caller, group.id, "tea", 5)
    assert (result.matches, result.outdated) == ([], 1)
    assert (await service.get(env.caller, file.id)).state is VectorState.OUTDATED
    await service.vectorize(env.caller, file.id, wait=0)
    await env.until(file, VectorState.INDEXED)


async def test_vectors_are_deleted_alone_or_with_the_file(vector_env: VectorEnv) -> None:
    env, group = vector_env, await vector_env.group()
    tea, boiler = await env.file(TEA, group), await env.file(BOILER, group)
    for file in (tea, boiler):
        await env.vectors.vectorize(env.caller, file.id)
    for _ in range(2):
        await env.vectors.delete(env.storage.tenant_id, tea.id)
    assert await env.found(group, "tea") == [BOILER]
    await env.files.delete(env.storage.tenant_id, PRIVATE, boiler.id)
    assert await env.found(group, "tea") == []
    counted = await env.count_rows()
    assert counted == {name: EMPTY[name] for name in counted}
    with pytest.raises(FileNotFound):
        await env.vectors.delete(env.storage.tenant_id, boiler.id)


async def test_vectors_of_an_expired_file_are_deleted(vector_env: VectorEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    env, group = vector_env, await vector_env.group()
    file = await env.file(TEA, group)
    await env.vectors.vectorize(env.caller, file.id)
    now = clock.utc_now()

    soon = now + timedelta(seconds=1)
    await env.files.change(env.storage.tenant_id, PRIVATE, file.id, lambda old: replace(old, expires_at=soon))
    monkeypatch.setattr(clock, "utc_now", lambda: now + timedelta(minutes=1))
    assert await env.files.expire() == 1
    assert (await env.count_rows())["file_vectors"] == 0


async def test_another_tenant_finds_nothing(vector_env: VectorEnv) -> None:
    env, group = vector_env, await vector_env.group()
    file = await env.file(TEA, group)
    await env.vectors.vectorize(env.caller, file.id)
    with pytest.raises(FileNotFound):
        await env.vectors.vectorize(env.stranger, file.id)
    with pytest.raises(FileNotFound):
        await env.vectors.get(env.stranger, file.id)
    with pytest.raises(FileNotFound):
        await env.vectors.delete(env.storage.other_id, file.id)
    with pytest.raises(GroupNotFound):
        await env.found(group, "tea", caller=env.stranger)
    with pytest.raises(GroupNotFound):
        await env.vectors.list_group(env.stranger, group.id, None, 10)
    assert await env.found(group, "tea") == [TEA]


async def test_a_folder_has_no_vectors(vector_env: VectorEnv) -> None:
    env, file = vector_env, await vector_env.file(TEA)
    await env.storage.db.write(
        lambda connection: connection.exec_driver_sql("UPDATE files SET mime_type = 'directory'")
    )
    with pytest.raises(FolderNotVectorized):
        await env.vectors.vectorize(env.caller, file.id)


async def test_a_group_is_listed_with_the_states_of_its_files(vector_env: VectorEnv) -> None:
    env, group = vector_env, await vector_env.group()
    files = [await env.file(f"{TEA} {number}", group) for number in range(3)]
    await env.vectors.vectorize(env.caller, files[1].id)
    page, token = await env.vectors.list_group(env.caller, group.id, None, 2)
    assert [(one.file.id, one.state) for one in page] == [
        (files[2].id, VectorState.NONE),
        (files[1].id, VectorState.INDEXED),
    ]
    rest, token = await env.vectors.list_group(env.caller, group.id, token, 2)
    assert ([one.file.id for one in rest], token) == ([files[0].id], None)


async def test_a_query_without_the_model_says_so(vector_env: VectorEnv) -> None:
    env, group = vector_env, await vector_env.group()
    env.model.is_available = False
    with pytest.raises(EmbeddingUnavailable):
        await env.found(group, "tea")
    with pytest.raises(GroupNotFound):  # before the model is asked
        await env.found(group, "tea", caller=await env.agent("ada"))
