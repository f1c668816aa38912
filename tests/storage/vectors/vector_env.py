"""Vectors with a real database, content and queue; extractor and model are the fakes of their contracts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import sqlalchemy as sa

from roost import work
from roost.core.db import Connection, Database
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.drivers.embedding.fake import FakeEmbeddingModel
from roost.drivers.text_extractor.fake import FakeTextExtractor
from roost.identity.caller import Caller, CallerKind
from roost.identity.gateway_tokens import GatewayTokens
from roost.storage.content.model import ContentNetwork
from roost.storage.files.groups.model import Group
from roost.storage.files.groups.service import GroupService
from roost.storage.files.model import File, FileMetadata
from roost.storage.files.service import FileService
from roost.storage.vectors.indexing import VectorIndexing
from roost.storage.vectors.model import VectorState
from roost.storage.vectors.service import VectorGrantService, VectorService
from roost.storage.vectors.vector_index import PgvectorIndex, VectorIndex, open_vector_index
from tests.storage.storage_env import StorageEnv

PRIVATE = ContentNetwork.PRIVATE


@dataclass
class VectorEnv:
    storage: StorageEnv
    queue: work.OperationWorker
    files: FileService
    groups: GroupService
    extractor: FakeTextExtractor
    model: FakeEmbeddingModel
    index: VectorIndex
    vectors: VectorService
    tokens: GatewayTokens
    grants: VectorGrantService

    @property
    def caller(self) -> Caller:
        return Caller(CallerKind.SERVICE, self.storage.tenant_id)

    @property
    def stranger(self) -> Caller:
        return Caller(CallerKind.SERVICE, self.storage.other_id)

    async def agent(self, agent_id: str, tenant_id: str | None = None) -> Caller:
        """Return an agent, which has a gateway token and so an identity."""
        owner = tenant_id or self.storage.tenant_id
        await self.storage.db.write(lambda connection: self.tokens.mint(connection, agent_id, owner))
        return Caller(CallerKind.RELAY, owner, agent_id=agent_id)

    async def group(self, name: str = "docs", network: ContentNetwork = PRIVATE) -> Group:
        return await self.groups.create(self.storage.tenant_id, network, name, is_public=False)

    async def file(
        self, text: str | bytes, group: Group | None = None, *, network: ContentNetwork = PRIVATE, name: str = "n.txt"
    ) -> File:
        data = text if isinstance(text, bytes) else text.encode()
        note = FileMetadata(name, group_id=None if group is None else group.id)
        return await self.storage.file(data, note, network=network, files=self.files)

    async def state(self, file: File) -> VectorState:
        return (await self.vectors.get(Caller(CallerKind.SERVICE, file.tenant_id), file.id)).state

    async def until(self, file: File, *wanted: VectorState) -> VectorState:
        async with asyncio.timeout(30):
            while (now := await self.state(file)) not in wanted:
                await asyncio.sleep(0.02)
        return now

    async def found(self, group: Group, text: str, limit: int = 20, caller: Caller | None = None) -> list[str]:
        """Return the texts of the nearest chunks."""
        result = await self.vectors.query(caller or self.caller, group.id, text, limit)
        return [match.chunk.text for match in result.matches]

    async def count_rows(self) -> dict[str, int]:
        """Count the rows of each table of vectors, that of the extension too."""
        names = ["file_vectors", "vector_segments", "vector_chunks", "vector_grants"]
        if isinstance(self.index, PgvectorIndex):
            names.append("chunk_vectors")

        def read(connection: Connection) -> dict[str, int]:
            count = sa.select(sa.func.count())
            return {name: connection.execute(count.select_from(sa.table(name))).scalar_one() for name in names}

        return await self.storage.db.read(read)


@asynccontextmanager
async def open_vector_env(
    db: Database, storage: StorageEnv, *, model: FakeEmbeddingModel | None = None
) -> AsyncIterator[VectorEnv]:
    queue, files = work.OperationWorker(db, owner="test"), FileService(db)
    extractor, model, index = FakeTextExtractor(), model or FakeEmbeddingModel(), open_vector_index(db)
    VectorIndexing(db, queue, storage.reader, extractor, model, index)
    vectors = VectorService(db, queue, files, model, index)
    tokens = GatewayTokens(db, Sealer(Sensitive(bytes(32))))
    grants, groups = VectorGrantService(db, tokens), GroupService(db, files)
    await queue.start()
    try:
        yield VectorEnv(storage, queue, files, groups, extractor, model, index, vectors, tokens, grants)
    finally:
        await queue.stop(grace=0.1)
