"""Exact search for the vectors nearest to a query, with NumPy, which is loaded by the first search.

The code of a vector has a byte for each number. By the inequality of Cauchy and Schwarz, a query of length 1 has a
product with a vector that differs from that with its code by at most the length of their difference. So a search of
codes, which are four times smaller, leaves out only vectors that cannot be among the nearest.
"""

import heapq
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

_ROUNDING = 1e-4
"""Added to each bound; more than what arithmetic with 32 bits can change."""


class NearestVectors:
    """The vectors with the greatest scalar products with a query, by their codes first."""

    def __init__(self, query: bytes, limit: int) -> None:
        """`query` and all vectors have the form of `EmbeddingModel.embed_texts`."""
        import numpy as np

        self._np = np
        self._query = np.frombuffer(query, "<f4")
        self._limit = limit
        self._lower = np.full(limit, -np.inf, "<f4")
        """The greatest lower bounds of products."""
        self._candidates: list[tuple[float, str, int]] = []

    def add_segments(self, segments: Sequence[tuple[str, int, bytes]]) -> None:
        """Compare codes with the query; each segment has a name and the number of its first vector."""
        codes = self._np.frombuffer(b"".join(part for _, _, part in segments), _code_type(len(self._query)))
        # Unlike `@`, it uses no threads, which would wait for processors that other programs use.
        products = self._np.vecdot(codes["numbers"].astype("<f4"), self._query) * codes["scale"]
        lower = self._np.concatenate((self._lower, products - codes["bound"]))
        self._lower = self._np.sort(lower)[-self._limit :]
        upper = products + codes["bound"]
        ends = list(accumulate(len(part) // codes.itemsize for _, _, part in segments))
        for row in self._np.flatnonzero(upper >= self._lower[0]).tolist():
            at = bisect_right(ends, row)
            name, first, _ = segments[at]
            self._candidates.append((float(upper[row]), name, first + row - (ends[at - 1] if at else 0)))

    def list_candidates(self) -> Sequence[tuple[str, int]]:
        """Return name and number of each vector that can be among the nearest."""
        least = float(self._lower[0])
        return [(name, number) for upper, name, number in self._candidates if upper >= least]

    def rank_vectors(self, vectors: Iterable[tuple[tuple[str, int], bytes]]) -> Sequence[tuple[str, int, float]]:
        """Return name, number and product of the nearest of these vectors; equal ones are in the order of names."""
        scored = ((-float(self._np.frombuffer(vector, "<f4") @ self._query), *key) for key, vector in vectors)
        return [(name, number, -product) for product, name, number in heapq.nsmallest(self._limit, scored)]


def encode_vectors(vectors: Sequence[bytes]) -> bytes:
    """Return the codes of vectors that have the form of `EmbeddingModel.embed_texts`."""
    import numpy as np

    matrix = np.frombuffer(b"".join(vectors), "<f4").reshape(len(vectors), -1)
    codes = np.empty(len(vectors), _code_type(matrix.shape[1]))
    codes["scale"] = np.maximum(np.abs(matrix).max(axis=1), 1e-30) / 127
    codes["numbers"] = np.rint(matrix / codes["scale"][:, None])
    codes["bound"] = np.linalg.norm(matrix - codes["numbers"] * codes["scale"][:, None], axis=1) + _ROUNDING
    return codes.tobytes()


def _code_type(dimension: int) -> "np.dtype[np.void]":
    import numpy as np

    return np.dtype([("scale", "<f4"), ("bound", "<f4"), ("numbers", "i1", (dimension,))])
