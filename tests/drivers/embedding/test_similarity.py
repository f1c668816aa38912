"""The exact search finds what a comparison of all vectors at once finds."""

import numpy as np
import pytest

from roost.drivers.embedding.similarity import NearestVectors


def unit_vectors(count: int, dimension: int, seed: int = 1) -> np.ndarray:
    numbers = np.random.default_rng(seed).standard_normal((count, dimension)).astype("<f4")
    return numbers / np.linalg.norm(numbers, axis=1, keepdims=True)


@pytest.mark.parametrize("limit", [1, 5, 20, 1000])
def test_the_nearest_of_many_matrices(limit: int) -> None:
    vectors, query = unit_vectors(777, 24), unit_vectors(1, 24, 2)[0]
    nearest = NearestVectors(query.tobytes(), limit)
    for at in range(0, len(vectors), 64):
        nearest.add_matrix(("f", at // 64), vectors[at : at + 64].tobytes())
    found = nearest.list_nearest()
    expected = np.argsort(-(vectors @ query), kind="stable")[:limit]
    assert [number * 64 + row for _, (_, number), row in found] == expected.tolist()
    assert [product for product, _, _ in found] == pytest.approx((vectors @ query)[expected].tolist(), abs=1e-6)


def test_equal_ones_are_in_the_order_of_keys_and_rows() -> None:
    vector = unit_vectors(1, 8)[0].tobytes()
    nearest = NearestVectors(vector, 3)
    for key in (("b", 0), ("a", 1), ("a", 0), ("c", 0)):
        nearest.add_matrix(key, vector * 2)
    assert [(key, row) for _, key, row in nearest.list_nearest()] == [(("a", 0), 0), (("a", 0), 1), (("a", 1), 0)]


def test_nothing_to_compare() -> None:
    nearest = NearestVectors(unit_vectors(1, 8)[0].tobytes(), 3)
    nearest.add_matrix(("a", 0), b"")
    assert nearest.list_nearest() == []
