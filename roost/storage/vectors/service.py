"""Vectors of a tenant's files: request, show, delete and search them; `indexing.py` makes them in the background.

A key may search all groups and files of its tenant, an agent those of groups that were granted to it.
"""

from collections.abc import Sequence
from contextlib import suppress

from roost import work
from roost.core import clock, ids
from roost.core.db import Connection, Database
from roost.drivers.embedding.contract import EmbeddingModel
from roost.identity import tenants
from roost.identity.caller import Caller
from roost.identity.errors import UnknownAgent
from roost.identity.gateway_tokens import GatewayTokens
from roost.storage.files.groups.model import Group, GroupNotFound
from roost.storage.files.groups.service import find_group, get_group
from roost.storage.files.model import File, FileEvent, FileFilter, FileNotFound
from roost.storage.files.service import FileService, files_by_id, find_file, select_group_files
from roost.storage.files.uploads.model import DIRECTORY
from roost.storage.vectors import store
from roost.storage.vectors.model import (
    MATCHES_LIMIT,
    NUMBER_BYTES,
    PENDING,
    VECTORIZE,
    ChunkMatch,
    FileVectors,
    FolderNotVectorized,
    GroupGrant,
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
            with suppress(OperationNotFound):  # finished long ago
                await self._operations.wait(requested.operation_id, wait)
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


class VectorGrantService:
    """The database deletes grants with their group, and with the gateway token of a deleted agent."""

    def __init__(self, db: Database, agents: GatewayTokens) -> None:
        self._db = db
        self._agents = agents

    async def grant(self, tenant_id: str, group_id: str, agent_id: str) -> None:
        """Allow an agent of the tenant to search a group. Idempotent. Raises GroupNotFound, UnknownAgent."""
        if await self._agents.get_tenant_id(agent_id) != tenant_id:
            raise UnknownAgent

        def add(connection: Connection) -> None:
            tenants.lock_tenant(connection, tenant_id)
            get_group(connection, tenant_id, None, group_id)
            grant = GroupGrant(group_id, agent_id, tenant_id, clock.utc_now())
            if not store.insert_grant(connection, grant) and not store.find_grant(connection, group_id, agent_id):
                raise UnknownAgent  # it was deleted meanwhile

        await self._db.write(add)

    async def revoke(self, tenant_id: str, group_id: str, agent_id: str) -> None:
        """Take the permission from an agent. Idempotent. Raises GroupNotFound."""

        def remove(connection: Connection) -> None:
            get_group(connection, tenant_id, None, group_id)
            store.delete_grant(connection, group_id, agent_id)

        await self._db.write(remove)

    async def list_agents(self, tenant_id: str, group_id: str) -> Sequence[GroupGrant]:
        """List the grants of a group, the oldest first. Raises GroupNotFound."""

        def read(connection: Connection) -> Sequence[GroupGrant]:
            get_group(connection, tenant_id, None, group_id)
            return store.list_grants(connection, group_id)

        return await self._db.read(read)

    async def list_groups(self, caller: Caller) -> Sequence[Group]:
        """List the groups that the calling agent may search; to a key, those that any agent may search."""

        def read(connection: Connection) -> Sequence[Group]:
            granted = store.list_granted_groups(connection, caller.tenant_id, caller.agent_id)
            groups = (find_group(connection, caller.tenant_id, None, group_id) for group_id in granted)
            return [group for group in groups if group is not None]

        return await self._db.read_long(read, caller.tenant_id)


def get_searchable_group(connection: Connection, caller: Caller, group_id: str) -> Group:
    """Return a group, on either network. Raises GroupNotFound, also without a grant."""
    group = get_group(connection, caller.tenant_id, None, group_id)
    if not _is_granted(connection, caller, group_id):
        raise GroupNotFound
    return group


def get_searchable_file(connection: Connection, caller: Caller, file_id: str) -> File:
    """Return a file, on either network. Raises FileNotFound, also for an agent without a grant of the file's group."""
    file = find_file(connection, caller.tenant_id, file_id)
    if file is None or not _is_granted(connection, caller, file.metadata.group_id):
        raise FileNotFound
    return file


def _is_granted(connection: Connection, caller: Caller, group_id: str | None) -> bool:
    if caller.agent_id is None:
        return True
    return group_id is not None and store.find_grant(connection, group_id, caller.agent_id) is not None


def _delete_vectors_of_file(connection: Connection, change: FileEvent, file: File, _before: File | None) -> None:
    if change is FileEvent.DELETED:
        store.delete_file_vectors(connection, file.id)
