import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.storage.content.unixfs import varint
from roost.storage.content.unixfs.errors import MalformedContent


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 1 << 32, (1 << 63) - 1])
def test_there_and_back(number: int) -> None:
    data = varint.encode_varint(number)
    assert varint.decode_varint(b"?" + data + b"!", 1) == (number, 1 + len(data))


@pytest.mark.parametrize("data", [b"", b"\x80", b"\x80\x00", b"\x81\x80\x00", b"\xff" * 9 + b"\x01"])
def test_malformed_varints_are_refused(data: bytes) -> None:
    with pytest.raises(MalformedContent):
        varint.decode_varint(data)


@given(st.integers(0, (1 << 63) - 1), st.binary(max_size=4))
def test_any_number_is_read_where_it_stands(number: int, before: bytes) -> None:
    data = varint.encode_varint(number)
    assert varint.decode_varint(memoryview(before + data), len(before)) == (number, len(before) + len(data))


@given(st.binary(max_size=12))
def test_any_bytes_are_the_shortest_form_or_none(data: bytes) -> None:
    try:
        number, end = varint.decode_varint(data)
    except MalformedContent:
        return
    assert varint.encode_varint(number) == data[:end]
