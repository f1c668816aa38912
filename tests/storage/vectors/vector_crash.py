"""Kill a process repeatedly while it vectorizes and deletes files, and check that the next one finishes.

`python -m tests.storage.vectors.vector_crash FOLDER ROUNDS SEED DATABASE`. It prints the number of rounds.
"""

import asyncio
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from roost.core.db import Database
from roost.drivers.embedding.fake import FakeEmbeddingModel
from roost.storage.content.model import ContentNetwork
from roost.storage.files.model import FileFilter
from roost.storage.vectors.model import SEGMENT_CHUNKS, VectorState
from tests.storage.crash import forked
from tests.storage.storage_env import open_storage_env
from tests.storage.vectors.vector_env import open_vector_env

PRIVATE = ContentNetwork.PRIVATE
FILES = 6
CHECK_EVERY = 3


class SlowModel(FakeEmbeddingModel):
    async def embed_texts(self, texts: Sequence[str]) -> Sequence[bytes]:
        await asyncio.sleep(0.005)
        return await super().embed_texts(texts)


def text_of(number: int) -> str:
    return "\n\n".join(f"Chapter {chapter} of {number}. " + "filler " * 100 for chapter in range(50 + number * 20))


async def prepare(folder: Path, url: str) -> None:
    async with open_vector_env(Database(url), open_storage_env(Database(url), folder)) as env:
        group = await env.group()
        for number in range(FILES):
            await env.file(text_of(number), group, name=str(number))


async def work(folder: Path, url: str, seed: float) -> None:
    """Request vectors, and delete some, until killed."""
    db, chance = Database(url), random.Random(seed)
    async with open_vector_env(db, open_storage_env(db, folder), model=SlowModel()) as env:
        files, _ = await env.files.list(env.storage.tenant_id, PRIVATE, FileFilter(), None, 100)
        while True:
            file = chance.choice(files)
            if chance.random() < 0.3:
                await env.vectors.delete(file.tenant_id, file.id)
            await env.vectors.vectorize(env.caller, file.id, wait=0)
            await asyncio.sleep(chance.random() * 0.02)


async def check(folder: Path, url: str) -> None:
    """Check that all requested vectors come, complete and once, and that deletions leave nothing."""
    db = Database(url)
    async with open_vector_env(db, open_storage_env(db, folder)) as env:
        files, _ = await env.files.list(env.storage.tenant_id, PRIVATE, FileFilter(), None, 100)
        assert len(files) == FILES
        chunks = segments = 0
        for file in files:
            if await env.state(file) is VectorState.NONE:
                continue
            await env.until(file, VectorState.INDEXED, VectorState.FAILED)
            vectors = (await env.vectors.get(env.caller, file.id)).vectors
            assert vectors is not None
            assert vectors.state is VectorState.INDEXED, vectors.reason
            assert vectors.chunks == vectors.chunks_done == 50 + int(file.metadata.name or 0) * 20
            chunks, segments = chunks + vectors.chunks, segments - (-vectors.chunks // SEGMENT_CHUNKS)
        counted = await env.count_rows()
        assert counted["vector_segments"] == segments
        assert counted.get("chunk_vectors", chunks) == chunks


def run_forked(run: Callable[[], Coroutine[Any, Any, None]]) -> None:
    _, status = os.waitpid(forked(lambda: asyncio.run(run())), 0)
    assert status == 0


def main(folder: Path, rounds: int, seed: int, url: str) -> None:
    chance = random.Random(seed)
    run_forked(lambda: prepare(folder, url))
    for number in range(1, rounds + 1):
        child = forked(partial(asyncio.run, work(folder, url, chance.random())))
        time.sleep(0.3 + chance.random() * 0.5)  # a random time for the kill
        os.kill(child, signal.SIGKILL)
        assert os.WIFSIGNALED(os.waitpid(child, 0)[1]), "it ended by itself"
        if number % CHECK_EVERY == 0 or number == rounds:
            run_forked(lambda: check(folder, url))
    print(rounds, rounds)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
