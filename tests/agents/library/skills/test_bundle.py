"""Bundles: paths, limits, and the folder that holds them (cases F1, F2)."""

import io
import random
import stat
import warnings
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.agents.library.skills import bundle
from roost.agents.library.skills.bundle import Bundle, BundleFile, read_files, read_zip, write_zip
from roost.agents.library.skills.errors import InvalidBundle

SKILL = ("SKILL.md", b"---\nname: x\n---\n")


def make_zip(files: list[tuple[str, bytes]]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files:
            archive.writestr(path, content)
    return data.getvalue()


def test_files_become_a_bundle() -> None:
    found = read_files([("scripts/run.sh", b"#!/bin/sh\n"), SKILL])
    assert found == Bundle({"SKILL.md": BundleFile(SKILL[1]), "scripts/run.sh": BundleFile(b"#!/bin/sh\n", True)})
    assert list(found.files) == ["SKILL.md", "scripts/run.sh"]
    assert read_zip(make_zip([("scripts/run.sh", b"#!/bin/sh\n"), SKILL])) == found


def test_one_folder_at_the_top_is_stripped() -> None:
    files = [(f"demo/{SKILL[0]}", SKILL[1]), ("demo/a/b", b"1"), ("__MACOSX/demo/._a", b"x"), ("demo/.DS_Store", b"x")]
    assert list(read_files(files).files) == ["SKILL.md", "a/b"]
    assert list(read_zip(make_zip(files)).files) == ["SKILL.md", "a/b"]


@pytest.mark.parametrize(
    "files", [[], [("a", b"")], [("skill.md", b"")], [("x/SKILL.md", b""), ("y/a", b"")], [("x/y/SKILL.md", b"")]]
)
def test_without_a_skill_file(files: list[tuple[str, bytes]]) -> None:
    with pytest.raises(InvalidBundle, match=r"SKILL\.md is missing"):
        read_files(files)


BAD_PATHS = (
    *("../x", "a/../../x", "a/./x", "/etc/passwd", "//x", "a//b", "", "a/", "~/x", "~root/x", "C:x", "c:/x", "a\\b"),
    *("\\\\host\\x", "a\0b", "a\nb", "a\x1b[0mb", "a\u202eb", "a\u200bb", "a\ud800", "a ", " a", "a.", "b:c", "a*"),
    *(".git/config", "a/.GIT/x", ".git", ".g\u200cit/x", "git~1/x", "\uff0egit/x", "x" * 101, "\u00e9" * 51),
    *("/".join("abcdefghi"), "/".join(["x" * 90] * 3)),
)


@pytest.mark.parametrize("path", BAD_PATHS)
def test_paths_that_are_refused(path: str) -> None:
    with pytest.raises(InvalidBundle):
        read_files([SKILL, (path, b"x")])
    with pytest.raises(InvalidBundle):
        read_files([(f"top/{SKILL[0]}", SKILL[1]), (f"top/{path}", b"x")])


@pytest.mark.parametrize(
    "pair",
    [("a", "A"), ("d/a", "D/b"), ("\u00e9", "e\u0301"), ("stra\u00dfe", "STRASSE"), ("x", "x"), ("\ufb01", "fi")],
)
def test_paths_that_collide_are_refused(pair: tuple[str, str]) -> None:
    for one, other in (pair, pair[::-1]):
        with pytest.raises(InvalidBundle, match=r"same|twice"):
            read_files([SKILL, (one, b""), (other, b"")])


def test_a_file_cannot_be_a_folder() -> None:
    for files in ([("a", b""), ("a/b", b"")], [("a/b", b""), ("a", b"")]):
        with pytest.raises(InvalidBundle, match="below a file"):
            read_files([SKILL, *files])


def test_limits_of_number_and_size() -> None:
    many = [SKILL, *((f"f{n}", b"") for n in range(199))]
    assert len(read_files(many).files) == 200
    for read in (read_files, lambda files: read_zip(make_zip(files))):
        with pytest.raises(InvalidBundle, match="More than 200"):
            read([*many, ("g", b"")])
        with pytest.raises(InvalidBundle, match="larger than 10 MB"):
            read([SKILL, ("a", bytes(6_000_000)), ("b", bytes(6_000_000))])
    with pytest.raises(InvalidBundle, match="archive is larger"):
        read_zip(bytes(bundle.ARCHIVE_LIMIT + 1))


def test_folders_of_archives_are_checked_too() -> None:
    with pytest.raises(InvalidBundle):
        read_zip(make_zip([SKILL, ("../x/", b"")]))


_NAMES = st.text(max_size=12) | st.sampled_from(["..", ".", "", ".git", "SKILL.md", "__MACOSX", "con", "a", "A", "\0"])
_PATHS = st.lists(_NAMES, max_size=10).map("/".join) | st.sampled_from([SKILL[0], f"x/{SKILL[0]}"])
_MODES = st.sampled_from([0, 0o644, 0o755, stat.S_IFLNK | 0o777, stat.S_IFCHR, stat.S_IFREG | 0o755, 0xFFFF])


def make_entries(entries: list[tuple[str, int, bytes]], method: int) -> bytes:
    data = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(data, "w") as archive:
        warnings.simplefilter("ignore")  # names that stand twice
        for path, mode, content in entries:
            info = zipfile.ZipInfo("x")
            info.filename, info.external_attr = path, mode << 16
            archive.writestr(info, content, method)
    return data.getvalue()


def check_limits(found: Bundle) -> None:
    assert SKILL[0] in found.files
    assert len(found.files) <= bundle.FILES_LIMIT
    assert sum(len(file.content) for file in found.files.values()) <= bundle.BYTES_LIMIT
    assert all(bundle.check_path(path) is None for path in found.files)
    folders = {path.rpartition("/")[0] for path in found.files}
    assert not folders & found.files.keys()


@settings(max_examples=400)
@given(st.data())
def test_archives_are_refused_or_within_the_limits(data: st.DataObject) -> None:
    """Cases F1, F2: whatever the entries are, and whichever bytes of the archive are damaged."""
    entries = data.draw(st.lists(st.tuples(_PATHS, _MODES, st.binary(max_size=300)), max_size=6))
    if data.draw(st.booleans()):
        entries.append((SKILL[0], 0o644, SKILL[1]))
    method = data.draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
    try:
        archive = bytearray(make_entries(entries, method))
    except UnicodeEncodeError:
        return
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(archive) - 1))
        archive[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
    try:
        found = read_zip(bytes(archive))
    except InvalidBundle:
        return
    check_limits(found)
    assert read_zip(write_zip(found)) == found


@settings(max_examples=400)
@given(st.lists(st.tuples(st.text(max_size=30) | _PATHS, st.binary(max_size=50)), max_size=8))
def test_files_are_refused_or_within_the_limits(files: list[tuple[str, bytes]]) -> None:
    try:
        found = read_files([*files, SKILL])
    except InvalidBundle:
        return
    check_limits(found)


@settings(max_examples=200)
@given(st.binary(max_size=200))
def test_no_bytes_are_an_archive_by_accident(data: bytes) -> None:
    for one in (data, b"PK\x03\x04" + data, b"PK\x03\x04" + data + b"PK\x05\x06" + bytes(18)):
        with pytest.raises(InvalidBundle):
            read_zip(one)


def test_random_paths_are_refused_or_safe() -> None:
    chance = random.Random(3)
    parts = [
        "a",
        "b",
        "..",
        ".",
        "/",
        "\\",
        ":",
        "~",
        ".git",
        " ",
        "\0",
        "\u202e",
        "A",
        "\u00e9",
        "e\u0301",
        "SKILL.md",
    ]
    accepted = 0
    for _ in range(3000):
        paths = ["".join(chance.choices(parts, k=chance.randint(1, 5))) for _ in range(3)]
        try:
            found = read_files([SKILL, *((path, b"") for path in paths)])
        except InvalidBundle:
            continue
        accepted += 1
        for path in found.files:
            assert not {"", ".", "..", ".git"}.intersection(path.split("/"))
            assert "\\" not in path
    assert accepted > 20
