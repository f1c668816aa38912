"""Vectorize files in the background: extract the text, split it, embed the chunks, store the vectors.

An attempt begins from the start. Its segments are searched when all are stored, because the state of the file becomes
`indexed` in the last transaction. If the file or its vectors are deleted meanwhile, the next write of the attempt
stores nothing and ends it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from functools import partial
from typing import TypeVar

from semantic_text_splitter import TextSplitter

from roost import work
from roost.core import clock, log
from roost.core.db import Connection, Database
from roost.core.machine.threads import run_in_daemon_thread
from roost.core.problem import Problem
from roost.drivers.embedding.contract import CHUNK_CHARACTERS, EmbeddingModel
from roost.drivers.text_extractor.contract import TextExtractor
from roost.identity import tenants
from roost.storage.content.model import ContentScope
from roost.storage.content.reader import ContentReader
from roost.storage.content.unixfs.cid import Cid
from roost.storage.files.model import File
from roost.storage.files.service import find_file
from roost.storage.vectors import store
from roost.storage.vectors.model import (
    CHUNKS_LIMIT,
    NUMBER_BYTES,
    PLAN_CHUNKS,
    SEGMENT_CHUNKS,
    VECTORIZE,
    DocumentWithoutText,
    TextChunk,
    TooManyChunks,
    VectorizationPostponed,
    VectorQuotaExceeded,
    VectorsDeleted,
    VectorSegment,
    VectorState,
)
from roost.storage.vectors.vector_index import VectorIndex
from roost.work import ClaimedOperation, Operation, OperationLimits, Settlement

RETRIES = 8
"""Attempts after the first one if drivers are away, over four minutes."""
LIMITS = OperationLimits(total=4, per_tenant=2, per_subject=2)
"""Files that are vectorized at a time."""
_REASON_CHARACTERS = 300

OVERLAP_CHARACTERS = 80
"""Characters that a chunk may share with the one before it."""
_BLOCK_CHARACTERS = 20_000
"""The splitter takes quadratic time for long text without spaces, so it gets blocks of this size."""

T = TypeVar("T")
_log = log.get_logger("vectors")
_splitter = TextSplitter(CHUNK_CHARACTERS, overlap=OVERLAP_CHARACTERS)


class VectorIndexing:
    def __init__(
        self,
        db: Database,
        operations: work.OperationWorker,
        reader: ContentReader,
        extractor: TextExtractor,
        model: EmbeddingModel,
        index: VectorIndex,
    ) -> None:
        self._db = db
        self._reader = reader
        self._extractor = extractor
        self._model = model
        self._index = index
        operations.handle(VECTORIZE, self.vectorize, retries=RETRIES, limits=LIMITS, on_failure=_mark_failed)

    async def vectorize(self, claim: ClaimedOperation) -> Settlement | None:
        """Run one attempt. Raises what the next attempt may not meet."""
        attempt = _IndexingAttempt(claim)
        try:
            await self._run(attempt)
        except VectorsDeleted:
            return None
        except Exception as error:
            reason = _describe_error(error)
            if _is_temporary(error) and claim.failures < RETRIES:
                await attempt.try_update(state=VectorState.QUEUED, reason=reason)
                raise VectorizationPostponed(reason) if isinstance(error, Problem) else error from error
            unexpected = None if isinstance(error, Problem) else error
            _log.warning("file.not_vectorized", file=attempt.file_id, reason=reason, exc_info=unexpected)
            return attempt.settle(state=VectorState.FAILED, reason=reason, chunks=0, chunks_done=0)
        return attempt.settle(state=VectorState.INDEXED, reason=None)

    async def _run(self, attempt: "_IndexingAttempt") -> None:
        file = await self._db.read(lambda connection: find_file(connection, attempt.tenant_id, attempt.file_id))
        if file is None:
            raise VectorsDeleted
        chunks = await self._read_chunks(file)
        await attempt.write(partial(self._begin, attempt, len(chunks)))
        for at in range(0, len(chunks), SEGMENT_CHUNKS):
            part = chunks[at : at + SEGMENT_CHUNKS]
            vectors = await self._model.embed_texts([chunk.text for chunk in part])
            segment = VectorSegment(file.id, at // SEGMENT_CHUNKS, part, vectors)
            await attempt.write(partial(self._add_segment, segment, at + len(part)))

    async def _read_chunks(self, file: File) -> Sequence[TextChunk]:
        """Return the text of a file in chunks. Raises errors of the extractor, DocumentWithoutText, TooManyChunks."""
        scope = ContentScope(file.network, file.tenant_id)
        stat = await self._reader.stat(scope, Cid.parse(file.cid))
        async with aclosing(self._reader.stream_file(scope, stat)) as source:
            text = await self._extractor.extract_text(source, file.size, file.metadata.name or "", file.mime_type)
        chunks = await run_in_daemon_thread(lambda: split_text(text, CHUNKS_LIMIT))
        if not chunks:
            raise DocumentWithoutText
        return chunks

    def _begin(self, attempt: "_IndexingAttempt", chunks: int, connection: Connection) -> None:
        """Reserve the chunks, and delete those of an earlier attempt. Raises VectorQuotaExceeded."""
        limit = PLAN_CHUNKS[tenants.get_tenant(connection, attempt.tenant_id).plan]
        if store.count_chunks(connection, attempt.tenant_id, attempt.file_id) + chunks > limit:
            raise VectorQuotaExceeded(f"{VectorQuotaExceeded.message}: it allows {limit} chunks")
        self._index.clear_segments(connection, attempt.file_id)
        begun = {"state": VectorState.INDEXING, "model": self._model.model_id, "chunks": chunks, "chunks_done": 0}
        store.update_file_vectors(connection, attempt.file_id, reason=None, updated_at=clock.utc_now(), **begun)

    def _add_segment(self, segment: VectorSegment, done: int, connection: Connection) -> None:
        self._index.add_segment(connection, segment)
        dimension = len(segment.vectors[0]) // NUMBER_BYTES
        progress = {"chunks_done": done, "dimension": dimension, "updated_at": clock.utc_now()}
        store.update_file_vectors(connection, segment.file_id, **progress)


def split_text(text: str, limit: int) -> Sequence[TextChunk]:
    """Split a text at the ends of paragraphs, sentences or words into chunks that an embedding model reads whole.

    Chunks have no space at their ends. Blocking, up to a second. Raises TooManyChunks.
    """
    chunks: list[TextChunk] = []
    for at, block in _split_blocks(text):
        for begin, chunk in _splitter.chunk_indices(block):
            chunks.append(TextChunk(at + begin, at + begin + len(chunk), chunk))
        if len(chunks) > limit:
            raise TooManyChunks(f"The text has more than {limit} chunks of at most {CHUNK_CHARACTERS} characters")
    return chunks


def _split_blocks(text: str) -> Iterator[tuple[int, str]]:
    """Yield blocks of the text with their offsets, each up to a line end, a space or the maximum size."""
    at = 0
    while at < len(text):
        end = at + _BLOCK_CHARACTERS
        if end < len(text):
            half = at + _BLOCK_CHARACTERS // 2
            end = max(text.rfind("\n", half, end), 0) or max(text.rfind(" ", half, end), 0) or end
        yield at, text[at:end]
        at = end


class _IndexingAttempt:
    """Attempt at one file, whose writes take place while it is current and the file's vectors are still wanted."""

    def __init__(self, claim: ClaimedOperation) -> None:
        assert claim.tenant_id is not None
        self._claim = claim
        self.tenant_id = claim.tenant_id
        self.file_id = str(claim.payload["file"])

    async def write(self, fn: Callable[[Connection], T]) -> T:
        """Run `fn` in a guarded write transaction. Raises VectorsDeleted, LeaseLost."""

        def guarded(connection: Connection) -> T:
            if not self._is_wanted(connection):
                raise VectorsDeleted
            return fn(connection)

        return await self._claim.guard(guarded)

    async def try_update(self, **values: object) -> None:
        """Update the row of the file unless it was deleted."""
        await self._claim.guard(lambda connection: self._update(connection, values))

    def settle(self, **values: object) -> Settlement:
        """Return what updates the row of the file and finishes the operation."""

        def finish(connection: Connection) -> None:
            self._update(connection, values)
            work.finish_operation(connection, self._claim, None)

        return Settlement(finish)

    def _update(self, connection: Connection, values: dict[str, object]) -> None:
        if self._is_wanted(connection):
            store.update_file_vectors(connection, self.file_id, updated_at=clock.utc_now(), **values)

    def _is_wanted(self, connection: Connection) -> bool:
        """Lock tenant and row of the file; return whether the row is there and still names this operation."""
        tenants.lock_tenant(connection, self.tenant_id)  # before the row, as requests and deletions do
        row = store.find_file_vectors(connection, self.file_id, lock=True)
        return row is not None and row.operation_id == self._claim.id


def _mark_failed(connection: Connection, operation: Operation, reason: str) -> None:
    failed = {"state": VectorState.FAILED, "reason": reason[:_REASON_CHARACTERS], "updated_at": clock.utc_now()}
    row = store.find_file_vectors(connection, str(operation.payload["file"]), lock=True)
    if row is not None and row.operation_id == operation.id:
        store.update_file_vectors(connection, row.file_id, chunks=0, chunks_done=0, **failed)


def _is_temporary(error: Exception) -> bool:
    return not isinstance(error, Problem) or error.kind.is_temporary


def _describe_error(error: Exception) -> str:
    problem = error if isinstance(error, Problem) else Problem()
    return problem.message[:_REASON_CHARACTERS]
