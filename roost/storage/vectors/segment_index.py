"""Index whose segments are rows with a matrix of vectors, on every database."""

from collections.abc import Sequence

from roost.core.db import Connection, IdQuery
from roost.drivers.embedding.similarity import NearestVectors
from roost.storage.vectors import store
from roost.storage.vectors.model import SEGMENT_CHUNKS, NearChunk, VectorSegment
from roost.storage.vectors.vector_index import VectorIndex


class SegmentIndex(VectorIndex):
    def add_segment(self, connection: Connection, segment: VectorSegment) -> None:
        store.insert_segment(connection, segment, b"".join(segment.vectors))

    def clear_segments(self, connection: Connection, file_id: str) -> None:
        store.delete_segments(connection, file_id)

    def find_nearest(self, connection: Connection, files: IdQuery, query: bytes, limit: int) -> Sequence[NearChunk]:
        nearest = NearestVectors(query, limit)
        for file_id, number, matrix in store.read_matrices(connection, files):
            nearest.add_matrix((file_id, number), matrix)
        return [
            NearChunk(file_id, number * SEGMENT_CHUNKS + row, score)
            for score, (file_id, number), row in nearest.list_nearest()
        ]
