"""Indexes of vectors, and which one a database allows; each compares every vector with the query (decision 0034)."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from roost.core import log
from roost.core.db import Connection, Database, IdQuery
from roost.drivers.embedding.similarity import NearestVectors, encode_vectors
from roost.storage.vectors import store
from roost.storage.vectors.model import SEGMENT_CHUNKS, NearChunk, VectorSegment

_CONVERTED_SEGMENTS = 64
"""Segments that are converted in one transaction."""

_log = log.get_logger("vectors")


class VectorIndex(ABC):
    """Index in the deployment's database; its rows are deleted with the row of the file in `file_vectors`."""

    @abstractmethod
    def add_segment(self, connection: Connection, segment: VectorSegment) -> None:
        """Store a segment of a file that has a row in `file_vectors`, in the caller's transaction."""

    @abstractmethod
    def clear_segments(self, connection: Connection, file_id: str) -> None:
        """Delete all segments of a file, in the caller's transaction."""

    @abstractmethod
    def find_nearest(self, connection: Connection, files: IdQuery, query: bytes, limit: int) -> Sequence[NearChunk]:
        """Return the chunks of these files whose vectors are nearest to `query`, the nearest first.

        All their vectors have the dimension of `query`; all have the length 1. Equally near ones come in the order of
        file ids and numbers.
        """


class SegmentIndex(VectorIndex):
    """Index whose segments are rows with the codes of their vectors, on every database."""

    def add_segment(self, connection: Connection, segment: VectorSegment) -> None:
        store.insert_segment(connection, segment, encode_vectors(segment.vectors))

    def clear_segments(self, connection: Connection, file_id: str) -> None:
        store.delete_segments(connection, file_id)

    def find_nearest(self, connection: Connection, files: IdQuery, query: bytes, limit: int) -> Sequence[NearChunk]:
        nearest = NearestVectors(query, limit)
        for segments in store.read_codes(connection, files):
            nearest.add_segments(segments)
        vectors = store.read_vectors(connection, nearest.list_candidates())
        return [NearChunk(*found) for found in nearest.rank_vectors(vectors)]


class PgvectorIndex(VectorIndex):
    """Index on PostgreSQL with the extension `vector`."""

    def add_segment(self, connection: Connection, segment: VectorSegment) -> None:
        store.insert_segment(connection, segment, None)
        store.insert_vectors(connection, segment.file_id, segment.number * SEGMENT_CHUNKS, segment.vectors)

    def clear_segments(self, connection: Connection, file_id: str) -> None:
        store.delete_segments(connection, file_id)
        store.delete_vectors(connection, file_id)

    def find_nearest(self, connection: Connection, files: IdQuery, query: bytes, limit: int) -> Sequence[NearChunk]:
        return store.find_nearest(connection, files, query, limit)


def open_vector_index(db: Database) -> VectorIndex:
    """Return the index of a database, prepared. Blocking.

    On PostgreSQL with the extension `vector`, vectors that were stored without it are converted.
    """
    if db.is_sqlite:
        return SegmentIndex()
    if (reason := db.run(_prepare_pgvector)) is not None:
        _log.warning("pgvector.not_found", reason=reason)
        return SegmentIndex()
    while db.run(_convert_vectors):
        pass
    return PgvectorIndex()


def describe_index(connection: Connection) -> tuple[bool, str]:
    """Return whether vectors are searched as well as the database allows, and how."""
    if connection.dialect.name == "sqlite":
        return True, "vectors are compared with NumPy"
    if store.has_extension(connection):
        return True, "vectors are compared by pgvector"
    return False, "PostgreSQL lacks the extension `vector`, so that queries read more (docs/guides/vectors.md)"


def _prepare_pgvector(connection: Connection) -> str | None:
    """Create the table, with the extension if possible; return why the extension is not available.

    Vectors that were lost with an extension that was dropped become outdated.
    """
    reason = store.ensure_extension(connection)
    if reason is not None and not store.has_extension(connection):
        store.drop_vector_table(connection)
        store.forget_models(connection)
        return reason
    if store.ensure_vector_table(connection):
        store.forget_models(connection)
    return None


def _convert_vectors(connection: Connection) -> bool:
    """Move some vectors that were stored without the extension into the table; return whether there may be more."""
    for _ in range(_CONVERTED_SEGMENTS):
        if (taken := store.take_vectors(connection)) is None:
            return False
        file_id, number, vectors = taken
        store.insert_vectors(connection, file_id, number * SEGMENT_CHUNKS, vectors)
    return True
