import pytest

from roost.storage.unixfs import base


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\0a", b"hello", bytes(range(256))])
def test_base58_there_and_back(data: bytes) -> None:
    assert base.decode58(base.encode58(data)) == data


def test_known_values() -> None:
    assert base.encode58(b"Hello World!") == "2NEpo7TZRRrLZSi2U"
    assert base.encode32(b"yes mani !") == "pfsxgidnmfxgsibb"
    assert base.decode("bpfsxgidnmfxgsibb") == base.decode("k2lcpzo5yikidynfl") == b"yes mani !"


@pytest.mark.parametrize("text", ["", "?abc", "bPFSX", "f0", "fzz", "z0OIl", "ua=", "k" + "é"])
def test_what_is_in_no_alphabet(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        base.decode(text)
