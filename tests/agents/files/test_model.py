"""Validation of paths, file names and base64 (cases D1, D4, D5, D7)."""

import base64

import pytest

from roost.agents.files.errors import InvalidFileContent, InvalidFilename, InvalidFilePath, WorkspaceFileTooLarge
from roost.agents.files.model import FILE_LIMIT, decode_content, validate_filename, validate_path


@pytest.mark.parametrize(
    ("path", "relative"),
    [("a", "a"), ("a/b.txt", "a/b.txt"), ("/workspace/a", "a"), (".env", ".env"), ("ü/ñ", "ü/ñ"), ("a..b", "a..b")],
)
def test_valid_paths(path: str, relative: str) -> None:
    assert validate_path(path) == relative


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/etc/passwd",
        "..",
        "../x",
        "a/../b",
        "a/..",
        "a\\b",
        "a\0b",
        "a\nb",
        "x" * 4097,
        "/workspace/",
        "\ud800",
    ],
)
def test_invalid_paths(path: str) -> None:
    with pytest.raises(InvalidFilePath):
        validate_path(path)


@pytest.mark.parametrize("name", ["a", "report.pdf", ".env", "ü.txt", "x" * 255, "a b", "console.log", "com.txt"])
def test_valid_filenames(name: str) -> None:
    assert validate_filename(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../x",
        "a/b",
        "a\\b",
        "a\0b",
        ".git",
        ".GIT",
        ".git/config",
        "x" * 256,
        "ü" * 128,
        "CON",
        "nul.txt",
        "COM1",
        "a ",
        " a",
        "a.",
        "a:b",
        "a\nb",
    ],
)
def test_invalid_filenames(name: str) -> None:
    with pytest.raises(InvalidFilename):
        validate_filename(name)


def test_base64_is_strict_and_bounded() -> None:
    assert decode_content("") == b""
    assert decode_content(base64.b64encode(b"hello").decode()) == b"hello"
    for bad in ("data:text/plain;base64,aGk=", "aGk", "aG k=", "aGk=\n", "é", "a" + " " * 1000):
        with pytest.raises(InvalidFileContent):
            decode_content(bad)
    assert len(decode_content(base64.b64encode(bytes(FILE_LIMIT)).decode())) == FILE_LIMIT
    with pytest.raises(WorkspaceFileTooLarge):
        decode_content(base64.b64encode(bytes(FILE_LIMIT + 1)).decode())
    with pytest.raises(WorkspaceFileTooLarge):
        decode_content("A" * (FILE_LIMIT * 2))
