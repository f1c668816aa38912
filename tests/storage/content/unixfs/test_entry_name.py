"""Any name of a file becomes a UnixFS name and back; no two names become one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.storage.content.unixfs.entry_name import decode_entry_name, encode_entry_name
from roost.storage.content.unixfs.errors import InvalidEntryName


def file_name(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b"plain.txt", "plain.txt"),
        ("größe €".encode(), "größe €"),
        (b"caf\xe9", "caf\uefe9"),
        (b"\x80\xff", "\uef80\uefff"),
        (b"\xed\xb2\x80", "\uefed\uefb2\uef80"),  # an encoded surrogate is not UTF-8
        ("\uef7f\uf000".encode(), "\uef7f\uf000"),  # beside the range
        ("icon \uef80".encode(), "icon \uefee\uefbe\uef80"),  # in the range: its own three bytes
        ("\uefff\uef80".encode() + b"\x80", "\uefee\uefbf\uefbf\uefee\uefbe\uef80\uef80"),
    ],
)
def test_a_byte_that_is_not_utf_8_becomes_a_private_character(data: bytes, name: str) -> None:
    assert encode_entry_name(file_name(data)) == name
    assert decode_entry_name(name) == file_name(data)


@given(st.binary(max_size=20) | st.text(st.characters(min_codepoint=0xEF70, max_codepoint=0xF000)).map(str.encode))
def test_there_and_back(data: bytes) -> None:
    assert decode_entry_name(encode_entry_name(file_name(data))).encode("utf-8", "surrogateescape") == data


@given(st.text(st.characters(exclude_categories=["Cs"]) | st.characters(min_codepoint=0xEF80, max_codepoint=0xEFFF)))
def test_no_two_unixfs_names_are_one_file(name: str) -> None:
    try:
        decoded = decode_entry_name(name)
    except InvalidEntryName:
        assert any("\uef80" <= sign <= "\uefff" for sign in name)
    else:
        assert encode_entry_name(decoded) == name


@pytest.mark.parametrize("name", ["\ud800", "\udcc3\udca9"])
def test_crafted_names_that_no_file_has(name: str) -> None:
    with pytest.raises(InvalidEntryName):
        encode_entry_name(name)


@pytest.mark.parametrize("name", ["\uefc3\uefa9", "\uefee\uefbd\uefbf", "\ud800"])
def test_a_crafted_name_that_would_be_another(name: str) -> None:
    with pytest.raises(InvalidEntryName):
        decode_entry_name(name)  # the bytes of "é", of U+EF7F, and none
