"""Select the index of vectors that the database allows."""

from roost.core import log
from roost.core.db import Connection, Database
from roost.storage.vectors.pgvector.index import PgvectorIndex, convert_matrices, has_pgvector, prepare_pgvector
from roost.storage.vectors.segment_index import SegmentIndex
from roost.storage.vectors.vector_index import VectorIndex

_log = log.get_logger("vectors")


def open_vector_index(db: Database) -> VectorIndex:
    """Return the index of a database, prepared. Blocking.

    On PostgreSQL with the extension `vector`, vectors that were stored without it are converted.
    """
    if db.is_sqlite:
        return SegmentIndex()
    if (reason := db.run(prepare_pgvector)) is not None:
        _log.warning("pgvector.not_found", reason=reason)
        return SegmentIndex()
    while db.run(convert_matrices):
        pass
    return PgvectorIndex()


def describe_index(connection: Connection) -> tuple[bool, str]:
    """Return whether vectors are searched as well as the database allows, and how."""
    if connection.dialect.name == "sqlite":
        return True, "vectors are compared with NumPy"
    if has_pgvector(connection):
        return True, "vectors are compared by pgvector"
    return False, "PostgreSQL lacks the extension `vector`, so that queries read more (docs/guides/vectors.md)"
