"""MurmurHash3 x64 as its author's own program prints it, of which shards use the first half."""

import pytest

from roost.storage.unixfs.murmur3 import hash64


@pytest.mark.parametrize(
    ("text", "digest"),
    [
        ("", "0000000000000000"),
        ("hello", "cbd8a7b341bd9b02"),
        ("hello, world", "342fac623a5ebc8e"),
        ("19 Jan 2038 at 3:14:07 AM", "b89e5988b737affc"),
        ("The quick brown fox jumps over the lazy dog", "e34bbc7bbc071b6c"),
        ("The quick brown fox jumps over the lazy dog.", "cd99481f9ee902c9"),
    ],
)
def test_known_values(text: str, digest: str) -> None:
    assert hash64(text.encode()).hex() == digest


def test_every_length_has_its_own_value() -> None:
    """Whole blocks are sixteen bytes, and tails of each length are mixed in."""
    found = {hash64(b"x" * length) for length in range(100)}
    assert len(found) == 100
    assert {len(one) for one in found} == {8}


@pytest.mark.parametrize("at", range(40))
def test_every_byte_matters(at: int) -> None:
    data = bytearray(40)
    data[at] = 1
    assert hash64(bytes(data)) != hash64(bytes(40))
