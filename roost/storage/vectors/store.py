"""Tables and SQL of the vectors of files, their chunks, and the grants of agents.

No migration creates the table of the extension `vector` of PostgreSQL, because an operator may install the extension at
any time: a server does at its start.
"""

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from roost.core.db import IdQuery, JsonText, UtcTime, insert_or_ignore, metadata, read_one, read_record, record_values
from roost.storage.vectors.model import (
    SEGMENT_CHUNKS,
    FileVectors,
    GroupGrant,
    NearChunk,
    TextChunk,
    VectorSegment,
    VectorState,
)

file_vectors = sa.Table(
    "file_vectors",
    metadata,
    sa.Column("file_id", sa.String(36), sa.ForeignKey("files.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), nullable=False, index=True),
    sa.Column("operation_id", sa.String(36), nullable=False),
    sa.Column("state", sa.String(10), nullable=False),
    sa.Column("model", sa.String(300), nullable=False),
    sa.Column("dimension", sa.Integer, nullable=False),
    sa.Column("chunks", sa.Integer, nullable=False),
    sa.Column("chunks_done", sa.Integer, nullable=False),
    sa.Column("reason", sa.String(300)),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime, nullable=False),
)

vector_segments = sa.Table(
    "vector_segments",
    metadata,
    sa.Column("file_id", sa.String(36), sa.ForeignKey("file_vectors.file_id", ondelete="CASCADE"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("codes", sa.LargeBinary),
)
"""`codes`: those of the vectors of `SEGMENT_CHUNKS` chunks; null where `pgvector` has the vectors."""

vector_chunks = sa.Table(
    "vector_chunks",
    metadata,
    sa.Column("file_id", sa.String(36), sa.ForeignKey("file_vectors.file_id", ondelete="CASCADE"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("chunk", JsonText, nullable=False),
    sa.Column("vector", sa.LargeBinary),
)
"""`chunk`: begin, end and text. `vector`: null where `pgvector` has it."""

vector_grants = sa.Table(
    "vector_grants",
    metadata,
    sa.Column("group_id", sa.String(36), sa.ForeignKey("groups.id", ondelete="CASCADE"), primary_key=True),
    sa.Column(
        "agent_id", sa.String(36), sa.ForeignKey("gateway_tokens.agent_id", ondelete="CASCADE"), primary_key=True
    ),
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Index("ix_vector_grants_agent_id", "agent_id"),
)

_PGVECTOR = sa.text("CREATE EXTENSION IF NOT EXISTS vector")
_VECTOR_TABLE = sa.text("""
    CREATE TABLE IF NOT EXISTS chunk_vectors (
        file_id VARCHAR(36) NOT NULL REFERENCES file_vectors (file_id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        embedding vector NOT NULL,
        PRIMARY KEY (file_id, number)
    )
""")
_chunk_vectors = sa.table("chunk_vectors", sa.column("file_id"), sa.column("number"), sa.column("embedding"))
_Key = tuple[str, int]
_v, _s, _k, _g, _c = file_vectors.c, vector_segments.c, vector_chunks.c, vector_grants.c, _chunk_vectors.c


def replace_file_vectors(connection: Connection, vectors: FileVectors) -> None:
    """Insert the row of a file in place of an earlier one, whose segments are deleted."""
    delete_file_vectors(connection, vectors.file_id)
    connection.execute(file_vectors.insert().values(record_values(file_vectors, vectors)))


def find_file_vectors(connection: Connection, file_id: str, *, lock: bool = False) -> FileVectors | None:
    """Find the row of a file; `lock` it until the transaction ends."""
    query = sa.select(file_vectors).where(_v.file_id == file_id)
    return read_one(connection, query.with_for_update() if lock else query, _file_vectors)


def list_file_vectors(connection: Connection, file_ids: Sequence[str]) -> Mapping[str, FileVectors]:
    rows = connection.execute(sa.select(file_vectors).where(_v.file_id.in_(file_ids)))
    return {row.file_id: _file_vectors(row) for row in rows}


def update_file_vectors(connection: Connection, file_id: str, **values: Any) -> None:
    connection.execute(file_vectors.update().where(_v.file_id == file_id).values(values))


def delete_file_vectors(connection: Connection, file_id: str) -> None:
    """Delete the row of a file and, by their foreign keys, its segments."""
    connection.execute(file_vectors.delete().where(_v.file_id == file_id))


def count_chunks(connection: Connection, tenant_id: str, without_file: str) -> int:
    """Return the number of chunks of a tenant's files but one."""
    query = sa.select(sa.func.coalesce(sa.func.sum(_v.chunks), 0))
    return int(connection.execute(query.where(_v.tenant_id == tenant_id, _v.file_id != without_file)).scalar_one())


def select_indexed(files: IdQuery, model: str, dimension: int) -> IdQuery:
    """Return a query of those of the files that have complete vectors of the model with that dimension."""
    present = (_v.state == VectorState.INDEXED, _v.model == model, _v.dimension == dimension)
    return sa.select(_v.file_id).where(_v.file_id.in_(files), *present)


def count_outdated(connection: Connection, files: IdQuery, model: str, dimension: int) -> int:
    """Return the number of those of the files that have complete vectors of another model or dimension."""
    is_other = sa.or_(_v.model != model, _v.dimension != dimension)
    query = sa.select(sa.func.count()).select_from(file_vectors).where(_v.file_id.in_(files), is_other)
    return connection.execute(query.where(_v.state == VectorState.INDEXED)).scalar_one()


def insert_segment(connection: Connection, segment: VectorSegment, codes: bytes | None) -> None:
    """Insert a segment and its chunks, without their vectors if it has no codes."""
    file_id, first = segment.file_id, segment.number * SEGMENT_CHUNKS
    connection.execute(vector_segments.insert().values(file_id=file_id, number=segment.number, codes=codes))
    rows = [
        {"file_id": file_id, "number": at, "chunk": [chunk.begin, chunk.end, chunk.text], "vector": codes and vector}
        for at, (chunk, vector) in enumerate(zip(segment.chunks, segment.vectors, strict=True), first)
    ]
    connection.execute(vector_chunks.insert(), rows)


def delete_segments(connection: Connection, file_id: str) -> None:
    connection.execute(vector_segments.delete().where(_s.file_id == file_id))
    connection.execute(vector_chunks.delete().where(_k.file_id == file_id))


def read_codes(connection: Connection, files: IdQuery) -> Iterator[Sequence[tuple[str, int, bytes]]]:
    """Yield segments of the files, some at a time: file id, number of the first chunk, and codes."""
    first = (_s.number * SEGMENT_CHUNKS).label("first")
    query = sa.select(_s.file_id, first, _s.codes).where(_s.file_id.in_(files), _s.codes.is_not(None))
    return connection.execute(query.execution_options(yield_per=_SEGMENTS)).partitions()


_SEGMENTS = 16
"""Segments that are read at a time: 0.4 MB with vectors of 384 numbers."""


def read_vectors(connection: Connection, keys: Sequence[_Key]) -> Iterator[tuple[_Key, bytes]]:
    """Yield chunks with their vectors, in any order."""
    for at in range(0, len(keys), _KEYS):
        yield from _read_column(connection, "vector", keys[at : at + _KEYS])


def read_chunks(connection: Connection, found: Sequence[NearChunk]) -> Sequence[TextChunk]:
    """Return the texts of chunks, in their order."""
    keys = [(near.file_id, near.number) for near in found]
    chunks = dict(_read_column(connection, "chunk", keys)) if keys else {}
    return [TextChunk(*json.loads(chunks[key])) for key in keys]


_KEYS = 200
"""Chunks of a statement; SQLite allows conditions of 1,000 terms."""


def _read_column(connection: Connection, name: str, keys: Sequence[_Key]) -> Iterator[tuple[_Key, Any]]:
    # SQLite reads the whole table for `(file_id, number) IN ...`, and SQLAlchemy takes longer than the look-ups.
    mark = "?" if connection.dialect.name == "sqlite" else "%s"
    places = " OR ".join([f"(file_id = {mark} AND number = {mark})"] * len(keys))
    query = f"SELECT file_id, number, {name} FROM vector_chunks WHERE {places}"  # noqa: S608 - names and marks
    for file_id, number, value in connection.exec_driver_sql(query, tuple(chain.from_iterable(keys))):
        yield (file_id, number), value


def take_vectors(connection: Connection) -> tuple[str, int, Sequence[bytes]] | None:
    """Return file id, number and vectors of a segment with codes, and remove codes and vectors."""
    # Servers that start at once convert side by side: each takes a row that no other has locked.
    query = sa.select(vector_segments).where(_s.codes.is_not(None)).limit(1).with_for_update(skip_locked=True)
    row = connection.execute(query).first()
    if row is None:
        return None
    first = row.number * SEGMENT_CHUNKS
    chunks = (_k.file_id == row.file_id, _k.number >= first, _k.number < first + SEGMENT_CHUNKS)
    vectors = connection.execute(sa.select(_k.vector).where(*chunks).order_by(_k.number)).scalars().all()
    connection.execute(vector_chunks.update().where(*chunks).values(vector=None))
    same = (_s.file_id == row.file_id, _s.number == row.number)
    connection.execute(vector_segments.update().where(*same).values(codes=None))
    return row.file_id, row.number, vectors


def forget_models(connection: Connection) -> None:
    """Make the vectors of all files outdated that have segments without codes."""
    bare = sa.select(_s.file_id).where(_s.codes.is_(None))
    connection.execute(file_vectors.update().where(_v.file_id.in_(bare)).values(model=""))


def ensure_extension(connection: Connection) -> str | None:
    """Install the extension if it is missing; return why it cannot be."""
    try:
        with connection.begin_nested():
            connection.execute(_PGVECTOR)
    except DBAPIError as error:
        return str(error.orig).partition("\n")[0]
    return None


def has_extension(connection: Connection) -> bool:
    return connection.execute(sa.text("SELECT count(*) FROM pg_extension WHERE extname = 'vector'")).scalar_one() > 0


def ensure_vector_table(connection: Connection) -> bool:
    """Create the table if it is missing, one server at a time; return whether it was missing."""
    connection.execute(sa.text("SELECT pg_advisory_xact_lock(hashtextextended('chunk_vectors', 0))"))
    if sa.inspect(connection).has_table("chunk_vectors"):
        return False
    connection.execute(_VECTOR_TABLE)
    return True


def drop_vector_table(connection: Connection) -> None:
    """Drop the table, which lost its vectors with the extension."""
    connection.execute(sa.text("DROP TABLE IF EXISTS chunk_vectors"))


def insert_vectors(connection: Connection, file_id: str, first: int, vectors: Sequence[bytes]) -> None:
    """Insert vectors of a file, of which the first has the number `first`."""
    rows = [
        {"file_id": file_id, "number": number, "embedding": _format_vector(vector)}
        for number, vector in enumerate(vectors, first)
    ]
    connection.execute(
        sa.text("INSERT INTO chunk_vectors VALUES (:file_id, :number, CAST(:embedding AS vector))"), rows
    )


def delete_vectors(connection: Connection, file_id: str) -> None:
    connection.execute(sa.text("DELETE FROM chunk_vectors WHERE file_id = :file_id"), {"file_id": file_id})


def find_nearest(connection: Connection, files: IdQuery, query: bytes, limit: int) -> Sequence[NearChunk]:
    """Return the chunks of these files that are nearest to a vector, the nearest first."""
    # As a subquery, the text is converted once and not for each row.
    vector = sa.select(sa.text("CAST(:embedding AS vector)")).scalar_subquery()
    distance = _c.embedding.op("<=>")(vector).label("distance")
    nearest = (
        sa.select(_c.file_id, _c.number, distance)
        .where(_c.file_id.in_(files))
        .order_by(distance, _c.file_id, _c.number)
        .limit(limit)
    )
    rows = connection.execute(nearest, {"embedding": _format_vector(query)})
    return [NearChunk(row.file_id, row.number, 1 - float(row.distance)) for row in rows]


def insert_grant(connection: Connection, grant: GroupGrant) -> bool:
    """Insert a grant unless it exists, or the group or the agent does not; return whether it was inserted."""
    return insert_or_ignore(connection, vector_grants.insert().values(record_values(vector_grants, grant)))


def find_grant(connection: Connection, group_id: str, agent_id: str) -> GroupGrant | None:
    query = sa.select(vector_grants).where(_g.group_id == group_id, _g.agent_id == agent_id)
    return read_one(connection, query, lambda row: read_record(GroupGrant, row))


def list_grants(connection: Connection, group_id: str) -> Sequence[GroupGrant]:
    """List the grants of a group, the oldest first."""
    query = sa.select(vector_grants).where(_g.group_id == group_id).order_by(_g.created_at, _g.agent_id)
    return [read_record(GroupGrant, row) for row in connection.execute(query)]


def list_granted_groups(connection: Connection, tenant_id: str, agent_id: str | None) -> Sequence[str]:
    """List the ids of the groups that an agent may search; without an agent, those that any agent may search."""
    query = sa.select(_g.group_id).distinct().where(_g.tenant_id == tenant_id).order_by(_g.group_id)
    rows = connection.execute(query if agent_id is None else query.where(_g.agent_id == agent_id))
    return list(rows.scalars())


def delete_grant(connection: Connection, group_id: str, agent_id: str) -> None:
    connection.execute(vector_grants.delete().where(_g.group_id == group_id, _g.agent_id == agent_id))


def _file_vectors(row: Any) -> FileVectors:
    return read_record(FileVectors, row, state=VectorState(row.state))


def _format_vector(vector: bytes) -> str:
    return str(list(struct.unpack(f"<{len(vector) // 4}f", vector)))
