"""Index on PostgreSQL with the extension `vector`."""

from collections.abc import Sequence

from roost.core.db import Connection, IdQuery
from roost.storage.vectors import store as segments
from roost.storage.vectors.model import SEGMENT_CHUNKS, NearChunk, VectorSegment
from roost.storage.vectors.pgvector import store
from roost.storage.vectors.vector_index import VectorIndex

_CONVERTED_SEGMENTS = 64


class PgvectorIndex(VectorIndex):
    def add_segment(self, connection: Connection, segment: VectorSegment) -> None:
        segments.insert_segment(connection, segment, None)
        store.insert_vectors(connection, segment.file_id, segment.number * SEGMENT_CHUNKS, segment.vectors)

    def clear_segments(self, connection: Connection, file_id: str) -> None:
        segments.delete_segments(connection, file_id)
        store.delete_vectors(connection, file_id)

    def find_nearest(self, connection: Connection, files: IdQuery, query: bytes, limit: int) -> Sequence[NearChunk]:
        return store.find_nearest(connection, files, query, limit)


def prepare_pgvector(connection: Connection) -> str | None:
    """Create the table, with the extension if possible; return why the extension is not available.

    Vectors that were lost with an extension that was dropped become outdated.
    """
    reason = store.ensure_extension(connection)
    if reason is not None and not store.has_extension(connection):
        store.drop_table(connection)
        segments.forget_models(connection)
        return reason
    if store.ensure_table(connection):
        segments.forget_models(connection)
    return None


def has_pgvector(connection: Connection) -> bool:
    """Return whether the extension is installed in the database."""
    return store.has_extension(connection)


def convert_matrices(connection: Connection) -> bool:
    """Move some vectors that were stored without the extension into the table; return whether there may be more."""
    for _ in range(_CONVERTED_SEGMENTS):
        if (taken := segments.take_matrix(connection)) is None:
            return False
        file_id, number, vectors = taken
        store.insert_vectors(connection, file_id, number * SEGMENT_CHUNKS, vectors)
    return True
