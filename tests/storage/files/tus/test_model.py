"""Headers of uploads in parts, as clients send them, and malformed ones."""

import base64
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.storage.content.unixfs.profile import V1
from roost.storage.files.tus.model import LIFETIME, InvalidTusUpload, TusUpload, parse_byte_count, parse_metadata_header

NOW = datetime(2026, 11, 21, tzinfo=UTC)
KEYS = st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=8)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("", {}),
        (" ", {}),
        (",", {}),
        ("filename YS50eHQ=", {"filename": "a.txt"}),
        ("filename YS50eHQ=,network cHVibGlj", {"filename": "a.txt", "network": "public"}),
        (" filename   YS50eHQ= , network cHVibGlj ,", {"filename": "a.txt", "network": "public"}),
        ("is_confidential", {"is_confidential": ""}),
        ("is_confidential ", {"is_confidential": ""}),
        ("name w7zmvKI=", {"name": "\u00fc\u6f22"}),
    ],
)
def test_metadata_header_is_parsed(header: str, found: dict[str, str]) -> None:
    assert parse_metadata_header(header) == found


@given(st.dictionaries(KEYS, TEXTS, max_size=8))
def test_whatever_clients_say(fields: dict[str, str]) -> None:
    assert parse_metadata_header(",".join(f"{key} {encoded(text)}" for key, text in fields.items())) == fields


@pytest.mark.parametrize(
    "header",
    [
        "filename YS50eHQ",  # without padding
        "filename YS50eHQ==",
        "filename a.txt",
        "filename YS5 0eHQ=",
        "filename YS50eHQ= more",
        "filename YS50eHQ=;network cHVibGlj",
        "filename _-8=",  # in the URL-safe alphabet
        "filename /w==",  # not UTF-8
        "filename 7aCA",  # a lone surrogate
        "filename YS50eHQ=,filename YS50eHQ=",
        "a,a",
        ",".join(f"key{place}" for place in range(33)),
        "filename " + "A" * 65_536,
    ],
)
def test_metadata_that_is_none(header: str) -> None:
    with pytest.raises(InvalidTusUpload):
        parse_metadata_header(header)


@given(st.text(max_size=60))
def test_any_header_is_metadata_or_refused(header: str) -> None:
    try:
        found = parse_metadata_header(header)
    except InvalidTusUpload:
        return
    assert all(key and key == key.strip() for key in found)


@pytest.mark.parametrize(("text", "wanted"), [("0", 0), ("007", 7), ("1", 1), ("9" * 15, 10**15 - 1)])
def test_numbers_in_headers_are_parsed(text: str, wanted: int) -> None:
    assert parse_byte_count(text, "Upload-Length") == wanted


@pytest.mark.parametrize(
    "text", [None, "", "-1", "+1", " 1", "1 ", "1.0", "1e3", "0x10", "1_000", "\u0661", "\u00b2", "9" * 16, "inf"]
)
def test_numbers_that_are_none(text: str | None) -> None:
    with pytest.raises(InvalidTusUpload, match="Upload-Offset must be a number of bytes"):
        parse_byte_count(text, "Upload-Offset")


def test_a_transfer_is_whole_at_its_length() -> None:
    transfer = TusUpload("i", "f", "t", 3, 10, {}, (), V1, NOW, NOW + LIFETIME)
    assert [replace(transfer, offset=offset).is_whole for offset in (0, 2, 3)] == [False, False, True]
    assert replace(transfer, length=0).is_whole
    assert not replace(transfer, length=None).is_whole
    assert not replace(transfer, length=None, offset=10).is_whole
