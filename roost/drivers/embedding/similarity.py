"""Exact search for the vectors nearest to a query, with NumPy, which is loaded by the first search."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass


class NearestVectors:
    """The rows of matrices with the greatest scalar products with a query.

    Keys name matrices; equal products are in the order of keys and rows. Memory is bounded by `limit` and one matrix.
    """

    def __init__(self, query: bytes, limit: int) -> None:
        """`query` has the form of `EmbeddingModel.embed_texts`."""
        import numpy as np

        self._read = np.frombuffer
        self._query = self._read(query, dtype="<f4")
        self._limit = limit
        self._heap: list[tuple[float, _Descending]] = []

    def add_matrix(self, key: tuple[str, int], matrix: bytes) -> None:
        """Compare each row of a matrix; the rows are vectors of the query's dimension, one after the other."""
        products = self._read(matrix, dtype="<f4").reshape(-1, len(self._query)) @ self._query
        candidates = range(len(products))
        if len(self._heap) == self._limit:
            candidates = (products >= self._heap[0][0]).nonzero()[0].tolist()
        for row in candidates:
            found = float(products[row]), _Descending(key, row)
            if len(self._heap) < self._limit:
                heapq.heappush(self._heap, found)
            else:
                heapq.heappushpop(self._heap, found)

    def list_nearest(self) -> Sequence[tuple[float, tuple[str, int], int]]:
        """Return product, key and row of the nearest vectors, the nearest first."""
        return [(product, place.key, place.row) for product, place in sorted(self._heap, reverse=True)]


@dataclass(eq=False, slots=True)
class _Descending:
    """Place of a row, which is less than the places before it."""

    key: tuple[str, int]
    row: int

    def __lt__(self, other: "_Descending") -> bool:
        return (self.key, self.row) > (other.key, other.row)
