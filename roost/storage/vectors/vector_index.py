"""The contract of an index: it stores vectors, and compares every one to find the nearest (decision 0034)."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from roost.core.db import Connection, IdQuery
from roost.storage.vectors.model import NearChunk, VectorSegment


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
