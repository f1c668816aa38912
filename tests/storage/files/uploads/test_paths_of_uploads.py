"""Paths of uploaded files, and names that could escape the folder when unpacked."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.storage.files.uploads.model import DEPTH_LIMIT, InvalidUpload, parse_upload_path


@pytest.mark.parametrize(
    ("filename", "path"),
    [
        ("a.txt", ["a.txt"]),
        ("folder/a.txt", ["folder", "a.txt"]),
        ("a b/\u00fc\u6f22.txt", ["a b", "\u00fc\u6f22.txt"]),
        (".hidden", [".hidden"]),
        ("...", ["..."]),
        ("a..b", ["a..b"]),
        ("C:", ["C:"]),
        ("%2e%2e", ["%2e%2e"]),
        ("\u202egnp.exe", ["\u202egnp.exe"]),
        ("n" * 255, ["n" * 255]),
        ("/".join("a" * DEPTH_LIMIT), ["a"] * DEPTH_LIMIT),
    ],
)
def test_paths_of_an_upload_are_parsed(filename: str, path: list[str]) -> None:
    assert list(parse_upload_path(filename)) == path


@pytest.mark.parametrize(
    "filename",
    [
        *("", ".", "..", "/", "/a", "a/", "a//b", "./a", "../a", "a/..", "a/../b", "a/./b"),
        *("a\\b", "..\\a", "C:\\a", "a\0", "a\nb", "a\r", "\t", "a\x1b[0m", "\x7f"),
        *("n" * 256, "\u00fc" * 128, "\ud800", "a/\udfff/b", "/".join("a" * (DEPTH_LIMIT + 1))),
    ],
)
def test_names_that_no_file_may_have(filename: str) -> None:
    with pytest.raises(InvalidUpload):
        parse_upload_path(filename)


@given(st.text(st.sampled_from("a./\\\0\n\u00fc"), max_size=12))
def test_no_path_leads_out(filename: str) -> None:
    try:
        path = parse_upload_path(filename)
    except InvalidUpload:
        return
    assert "/".join(path) == filename
    assert not {"", ".", ".."} & set(path)
    assert not set("\\\0\n") & set(filename)
