"""Vectors of a tenant's files: request, show, delete and search them; `indexing.py` makes them in the background."""

from collections.abc import Sequence

from roost import work
from roost.core import clock, ids
from roost.core.db import Connection, Database
from roost.drivers.embedding.contract import EmbeddingModel
from roost.identity import tenants
from roost.identity.caller import Caller
from roost.storage.files.model import File, FileEvent, FileFilter, FileNotFound
from roost.storage.files.service import FileService, files_by_id, find_file, select_group_files
from roost.storage.files.uploads.model import DIRECTORY
from roost.storage.vectors import store
from roost.storage.vectors.grants import get_searchable_file, get_searchable_group
from roost.storage.vectors.model import (
    MATCHES_LIMIT,
    NUMBER_BYTES,
    PENDING,
    VECTORIZE,
    ChunkMatch,
    FileVectors,
    FolderNotVectorized,
    QueryResult,
    VectorizationFailed,
    VectorizedFile,
    VectorState,
    describe_state,
)
from roost.storage.vectors.vector_index import VectorIndex
from roost.work import OperationNotFound

WAIT_SECONDS = 20.0
"""How long a request waits for the vectors of its file."""


class VectorService:
    def __init__(
        self,
        db: Database,
        operations: work.OperationWorker,
        files: FileService,
        model: EmbeddingModel,
        index: VectorIndex,
    ) -> None:
        self._db = db
        self._operations = operations
        self._files = files
        self._model = model
        self._index = index
        self._dimension: int | None = None
        """Dimension of the last query; an endpoint may change it and keep the id of its model."""
        files.add_listener(_delete_vectors_of_file)

    async def vectorize(self, caller: Caller, file_id: str, wait: float = WAIT_SECONDS) -> VectorizedFile:
        """Request the vectors of a file and wait for them up to `wait` seconds; return what is there then.

        A file whose vectors the present model made keeps them, because its content never changes.
        Raises FileNotFound, FolderNotVectorized, VectorizationFailed.
        """
        requested = await self._db.write(lambda connection: self._request(connection, caller, file_id))
        if requested.state in PENDING:
            await self._wait(requested.operation_id, wait)
        found = await self.get(caller, file_id)
        if found.state is VectorState.FAILED and found.vectors is not None:
            raise VectorizationFailed(found.vectors.reason)
        return found

    async def get(self, caller: Caller, file_id: str) -> VectorizedFile:
        """Return a file and its vectors. Raises FileNotFound."""

        def read(connection: Connection) -> VectorizedFile:
            file = get_searchable_file(connection, caller, file_id)
            return self._describe(file, store.find_file_vectors(connection, file.id))

        return await self._db.read(read)

    async def list_group(
        self, caller: Caller, group_id: str, token: str | None, limit: int
    ) -> tuple[Sequence[VectorizedFile], str | None]:
        """Return a page of the files of a group, newest first, and the token of the next one, if there is one.

        Raises GroupNotFound, InvalidPageToken.
        """
        group = await self._db.read(lambda connection: get_searchable_group(connection, caller, group_id))
        files, following = await self._files.list(
            caller.tenant_id, group.network, FileFilter(group_id=group.id), token, limit
        )
        file_ids = [file.id for file in files]
        vectors = await self._db.read_long(
            lambda connection: store.list_file_vectors(connection, file_ids), caller.tenant_id
        )
        return [self._describe(file, vectors.get(file.id)) for file in files], following

    async def delete(self, tenant_id: str, file_id: str) -> None:
        """Delete the vectors of a file, also while they are made. Idempotent. Raises FileNotFound."""

        def remove(connection: Connection) -> None:
            tenants.lock_tenant(connection, tenant_id)
            file = find_file(connection, tenant_id, file_id)
            if file is None:
                raise FileNotFound
            store.delete_file_vectors(connection, file.id)

        await self._db.write(remove)

    async def query(self, caller: Caller, group_id: str, text: str, limit: int = MATCHES_LIMIT) -> QueryResult:
        """Search a group for the chunks that are nearest to a text, in the vectors of the present model.

        Raises GroupNotFound, EmbeddingUnavailable, EmbeddingFailed.
        """
        if caller.agent_id is not None:  # without a grant, an agent does not make the model work
            await self._db.read(lambda connection: get_searchable_group(connection, caller, group_id))
        (vector,) = await self._model.embed_texts([text])
        self._dimension = len(vector) // NUMBER_BYTES
        return await self._db.read_long(
            lambda connection: self._search(connection, caller, group_id, vector, limit), caller.tenant_id
        )

    def _request(self, connection: Connection, caller: Caller, file_id: str) -> FileVectors:
        """Return the row of a file, with a new operation unless one is pending or the vectors are there."""
        tenants.lock_tenant(connection, caller.tenant_id)
        file = get_searchable_file(connection, caller, file_id)
        if file.mime_type == DIRECTORY:
            raise FolderNotVectorized
        present = store.find_file_vectors(connection, file.id)
        if present is not None and self._is_done_or_under_way(connection, file, present):
            return present
        now, subject = clock.utc_now(), f"vectors/{caller.tenant_id}"
        operation_id = ids.new_id()
        new = FileVectors(file.id, file.tenant_id, operation_id, VectorState.QUEUED, "", 0, 0, 0, None, now, now)
        store.replace_file_vectors(connection, new)
        payload = {"file": file.id}
        work.add_operation(connection, VECTORIZE, subject, payload, tenant_id=file.tenant_id, operation_id=operation_id)
        return new

    def _is_done_or_under_way(self, connection: Connection, file: File, vectors: FileVectors) -> bool:
        if vectors.state not in PENDING:
            return self._describe(file, vectors).state is VectorState.INDEXED
        try:
            return not work.get_operation(connection, vectors.operation_id).is_finished
        except OperationNotFound:
            return False

    async def _wait(self, operation_id: str, seconds: float) -> None:
        try:
            await self._operations.wait(operation_id, seconds)
        except OperationNotFound:  # finished long ago
            return

    def _search(self, connection: Connection, caller: Caller, group_id: str, vector: bytes, limit: int) -> QueryResult:
        get_searchable_group(connection, caller, group_id)
        files = select_group_files(caller.tenant_id, group_id)
        model = (self._model.model_id, len(vector) // NUMBER_BYTES)
        near = self._index.find_nearest(connection, store.select_indexed(files, *model), vector, limit)
        named = files_by_id(connection, caller.tenant_id, list({one.file_id for one in near}))
        chunks = store.read_chunks(connection, near)
        return QueryResult(
            [ChunkMatch(named[one.file_id], chunk, one.score) for one, chunk in zip(near, chunks, strict=True)],
            store.count_outdated(connection, files, *model),
        )

    def _describe(self, file: File, vectors: FileVectors | None) -> VectorizedFile:
        return VectorizedFile(file, vectors, describe_state(vectors, self._model.model_id, self._dimension))


def _delete_vectors_of_file(connection: Connection, change: FileEvent, file: File, _before: File | None) -> None:
    if change is FileEvent.DELETED:
        store.delete_file_vectors(connection, file.id)
