import pytest

from roost.storage.unixfs import varint
from roost.storage.unixfs.errors import Malformed


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 1 << 32, (1 << 63) - 1])
def test_there_and_back(number: int) -> None:
    data = varint.encode(number)
    assert varint.decode(b"?" + data + b"!", 1) == (number, 1 + len(data))


@pytest.mark.parametrize("data", [b"", b"\x80", b"\x80\x00", b"\x81\x80\x00", b"\xff" * 9 + b"\x01"])
def test_what_is_none(data: bytes) -> None:
    with pytest.raises(Malformed):
        varint.decode(data)
