"""Validation of paths, file names and base64 (cases D1, D4, D5, D7)."""

import base64
from datetime import UTC, datetime

import pytest

from roost.agents.workspace.files.model import (
    FILE_LIMIT,
    FileNotAsExpected,
    InvalidFileContent,
    InvalidFilename,
    InvalidFilePath,
    WorkspaceFileTooLarge,
    decode_content,
    format_etag,
    parse_etags,
    spell_path,
    validate_filename,
    validate_new_path,
    validate_path,
)
from roost.warden_client.files import FileStat, Stamp


@pytest.mark.parametrize(
    ("path", "relative"),
    [("a", "a"), ("a/b.txt", "a/b.txt"), ("/workspace/a", "a"), (".env", ".env"), ("ü/ñ", "ü/ñ"), ("a..b", "a..b")],
)
def test_valid_paths_are_made_relative(path: str, relative: str) -> None:
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
        "a\0b",
        "\uefc3\uefa9",
        "x" * 4097,
        "/workspace/",
        "\ud800",
    ],
)
def test_invalid_paths_are_refused(path: str) -> None:
    with pytest.raises(InvalidFilePath):
        validate_path(path)


@pytest.mark.parametrize("path", ["a\\b", "a\nb", "a\tb", "a\udcff", "a\x1b[1m"])
def test_odd_names_are_spelled_and_not_made(path: str) -> None:
    spelled = spell_path(path)
    assert spelled.encode()
    assert validate_path(spelled) == path
    with pytest.raises(InvalidFilePath):
        validate_new_path(spelled)


@pytest.mark.parametrize("name", ["a", "report.pdf", ".env", "ü.txt", "x" * 255, "a b", "console.log", "com.txt"])
def test_valid_filenames_are_kept(name: str) -> None:
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
def test_invalid_filenames_are_refused(name: str) -> None:
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


def stat_of(*stamp: int) -> FileStat:
    return FileStat(1, 0o644, datetime(2026, 1, 1, tzinfo=UTC), Stamp(*stamp))


@pytest.mark.parametrize("stamp", [(1, 2, 3), (-1, 1, 0), (2**63, 2**64 - 1, 2**64 - 1)])
def test_an_etag_is_the_stamp(stamp: tuple[int, int, int]) -> None:
    etag = format_etag(stat_of(*stamp))
    assert etag is not None
    assert parse_etags([etag, '"other"']) == [Stamp(*stamp)]


def test_an_etag_of_a_recent_change_is_weak() -> None:
    assert format_etag(stat_of(1, 0, 3)) == 'W/"1.0.3"'


@pytest.mark.parametrize("stamp", [(2**64, 1, 1), (1, 2**70, 1), (1, 1, -(2**64))])
def test_a_stamp_of_a_hostile_container_makes_no_etag(stamp: tuple[int, int, int]) -> None:
    assert format_etag(stat_of(*stamp)) is None


@pytest.mark.parametrize("tags", [[], ['"other"'], ["1.2.3"], ['"1.2"'], [f'"1.2.{"3" * 17}"']])
def test_tags_of_no_file_match_nothing(tags: list[str]) -> None:
    with pytest.raises(FileNotAsExpected):
        parse_etags(tags)
    assert parse_etags([*tags, "*"]) == ()
