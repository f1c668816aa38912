"""The exact search finds what a comparison of all vectors finds, and compares few vectors besides their codes."""

import numpy as np
import pytest

from roost.drivers.embedding.similarity import NearestVectors, encode_vectors

_DIMENSION = 96


def unit_vectors(count: int, seed: int = 1) -> np.ndarray:
    numbers = np.random.default_rng(seed).standard_normal((count, _DIMENSION)).astype("<f4")
    return numbers / np.linalg.norm(numbers, axis=1, keepdims=True)


def sparse_vectors(count: int, seed: int = 1) -> np.ndarray:
    """Return vectors of few great numbers, whose codes differ most from them."""
    vectors = unit_vectors(count, seed) ** 9
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype("<f4")


class Search:
    """A search of vectors whose segments have alternating sizes, and are added three at a time."""

    def __init__(self, vectors: np.ndarray, query: np.ndarray, limit: int, sizes: tuple[int, ...] = (64,)) -> None:
        segments, at = list[tuple[str, int, bytes]](), 0
        while at < len(vectors):
            part = vectors[at : at + sizes[len(segments) % len(sizes)]]
            segments.append(("f", at, encode_vectors([vector.tobytes() for vector in part])))
            at += len(part)
        nearest = NearestVectors(query.tobytes(), limit)
        for first in range(0, len(segments), 3):
            nearest.add_segments(segments[first : first + 3])
        self.candidates = [number for _, number in nearest.list_candidates()]
        kept = [(("f", number), vectors[number].tobytes()) for number in self.candidates]
        self.found = [(number, product) for _, number, product in nearest.rank_vectors(reversed(kept))]


@pytest.mark.parametrize("limit", [1, 10, 5000])
@pytest.mark.parametrize("sizes", [(64,), (1, 64, 7)])
def test_the_nearest_of_many_segments(limit: int, sizes: tuple[int, ...]) -> None:
    vectors = unit_vectors(3000)
    for query in unit_vectors(5, 2):
        search, products = Search(vectors, query, limit, sizes), vectors.astype("f8") @ query
        numbers, found = [number for number, _ in search.found], [product for _, product in search.found]
        # By their products, because the processor decides how those of nearly equal ones are rounded.
        assert found == pytest.approx(np.sort(products)[::-1][:limit].tolist(), abs=1e-6)
        assert found == pytest.approx(products[numbers].tolist(), abs=1e-6)
        assert found == sorted(found, reverse=True)
        assert len(set(numbers)) == len(numbers)
        assert len(search.candidates) <= limit + 30


def test_the_nearest_of_vectors_with_coarse_codes() -> None:
    vectors = sparse_vectors(3000)
    for query in [*sparse_vectors(3, 2), *unit_vectors(3, 2)]:
        expected = np.argsort(-(vectors.astype("f8") @ query))[:10]
        assert [number for number, _ in Search(vectors, query, 10).found] == expected.tolist()


def test_equal_ones_are_all_compared_and_in_their_order() -> None:
    vectors = np.repeat(unit_vectors(1), 200, axis=0)
    search = Search(vectors, vectors[0], 3)
    assert sorted(search.candidates) == list(range(200))
    assert [number for number, _ in search.found] == [0, 1, 2]


def test_vectors_of_zeros_have_codes() -> None:
    zeros = np.zeros((2, _DIMENSION), "<f4")
    assert Search(zeros, unit_vectors(1)[0], 1).found == [(0, 0)]


def test_nothing_to_compare() -> None:
    assert Search(unit_vectors(0), unit_vectors(1)[0], 1).found == []
