"""The table of vectors in PostgreSQL with the extension `vector`, and all SQL about it.

No migration creates it, because an operator may install the extension at any time: a server does at its start.
"""

import struct
from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from roost.core.db import IdQuery
from roost.storage.vectors.model import NearChunk

_EXTENSION = sa.text("CREATE EXTENSION IF NOT EXISTS vector")
_TABLE = sa.text("""
    CREATE TABLE IF NOT EXISTS chunk_vectors (
        file_id VARCHAR(36) NOT NULL REFERENCES file_vectors (file_id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        embedding vector NOT NULL,
        PRIMARY KEY (file_id, number)
    )
""")
_DROP = sa.text("DROP TABLE IF EXISTS chunk_vectors")
_LOCK = sa.text("SELECT pg_advisory_xact_lock(hashtextextended('chunk_vectors', 0))")
_IS_INSTALLED = sa.text("SELECT count(*) FROM pg_extension WHERE extname = 'vector'")
_INSERT = sa.text("INSERT INTO chunk_vectors VALUES (:file_id, :number, CAST(:embedding AS vector))")
_DELETE = sa.text("DELETE FROM chunk_vectors WHERE file_id = :file_id")
_chunk_vectors = sa.table("chunk_vectors", sa.column("file_id"), sa.column("number"), sa.column("embedding"))
_c = _chunk_vectors.c


def ensure_extension(connection: Connection) -> str | None:
    """Install the extension if it is missing; return why it cannot be."""
    try:
        with connection.begin_nested():
            connection.execute(_EXTENSION)
    except DBAPIError as error:
        return str(error.orig).partition("\n")[0]
    return None


def has_extension(connection: Connection) -> bool:
    return connection.execute(_IS_INSTALLED).scalar_one() > 0


def ensure_table(connection: Connection) -> bool:
    """Create the table if it is missing, one server at a time; return whether it was missing."""
    connection.execute(_LOCK)
    if sa.inspect(connection).has_table("chunk_vectors"):
        return False
    connection.execute(_TABLE)
    return True


def drop_table(connection: Connection) -> None:
    """Drop the table, which lost its vectors with the extension."""
    connection.execute(_DROP)


def insert_vectors(connection: Connection, file_id: str, first: int, vectors: Sequence[bytes]) -> None:
    """Insert vectors of a file, of which the first has the number `first`."""
    rows = [
        {"file_id": file_id, "number": number, "embedding": _format_vector(vector)}
        for number, vector in enumerate(vectors, first)
    ]
    connection.execute(_INSERT, rows)


def delete_vectors(connection: Connection, file_id: str) -> None:
    connection.execute(_DELETE, {"file_id": file_id})


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


def _format_vector(vector: bytes) -> str:
    return str(list(struct.unpack(f"<{len(vector) // 4}f", vector)))
