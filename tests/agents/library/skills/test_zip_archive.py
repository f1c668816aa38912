"""The reader of zip archives agrees with `zipfile`, or refuses (cases F1, F2)."""

import io
import random
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from roost.agents.library.skills.bundle import read_zip
from roost.agents.library.skills.errors import InvalidBundle
from roost.agents.library.skills.zip_archive import ENTRIES_LIMIT, read_zip_entries

LIMIT = 1_000_000
FILES = {"SKILL.md": b"# skill\n" * 50, "scripts/run.sh": b"#!/bin/sh\n", "empty": b"", "\u00e9/\U0001f600": b"x"}


class UnseekableOutput(io.RawIOBase):
    """An output without seek, so that sizes follow the data."""

    def __init__(self) -> None:
        self.data = b""

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        piece = bytes(data)  # pyright: ignore[reportArgumentType] - a Buffer
        self.data += piece
        return len(piece)


def make_zip(compression: int = zipfile.ZIP_DEFLATED, *, as_stream: bool = False, comment: bytes = b"") -> bytes:
    output = UnseekableOutput() if as_stream else io.BytesIO()
    with zipfile.ZipFile(output, "w", compression) as archive:
        archive.mkdir("scripts")
        for path, content in FILES.items():
            info = zipfile.ZipInfo(path)
            info.external_attr = (stat.S_IFREG | (0o755 if path.endswith(".sh") else 0o644)) << 16
            archive.writestr(info, content, compression)
        archive.comment = comment
    return output.data if isinstance(output, UnseekableOutput) else output.getvalue()


def make_entry(name: str, mode: int, content: bytes = b"x") -> bytes:
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w") as archive:
        info = zipfile.ZipInfo(name)
        info.external_attr = mode << 16
        archive.writestr(info, content)
    return output.getvalue()


def read(data: bytes) -> dict[str, bytes]:
    return {entry.path: entry.content for entry in read_zip_entries(data, LIMIT) if not entry.is_folder}


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("as_stream", [False, True])
def test_archives_are_read(compression: int, as_stream: bool) -> None:
    data = make_zip(compression, as_stream=as_stream)
    assert read(data) == FILES
    entries = {entry.path: entry for entry in read_zip_entries(data, LIMIT)}
    assert entries["scripts"].is_folder
    assert [path for path, entry in entries.items() if entry.is_executable] == ["scripts/run.sh"]


def test_a_comment_such_as_that_of_git_is_ignored() -> None:
    assert read(make_zip(comment=b"a" * 40)) == FILES


def test_archives_of_folders_are_read(tmp_path: Path) -> None:
    for path, content in FILES.items():
        (tmp_path / "top" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "top" / path).write_bytes(content)
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted((tmp_path / "top").rglob("*")):
            archive.write(file, file.relative_to(tmp_path))
    assert read((tmp_path / "x.zip").read_bytes()) == {f"top/{path}": content for path, content in FILES.items()}


@pytest.mark.parametrize(
    ("mode", "kind"),
    [
        (stat.S_IFLNK | 0o777, "symbolic link"),
        (stat.S_IFIFO | 0o644, "pipe"),
        (stat.S_IFSOCK | 0o644, "socket"),
        (stat.S_IFCHR | 0o644, "not a file"),
        (stat.S_IFBLK | 0o644, "not a file"),
        (stat.S_IFDIR | 0o755, "not a file"),
    ],
)
def test_special_files_are_refused(mode: int, kind: str) -> None:
    with pytest.raises(InvalidBundle, match=kind):
        read(make_entry("a", mode))


def zip_of(*names: str, content: bytes = b"x") -> bytes:
    """An archive with names as they are given; `zipfile` itself writes slashes."""
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name in names:
            entry = zipfile.ZipInfo("x" * len(name))
            entry.filename, entry.create_system = name, 0
            archive.writestr(entry, b"" if name.endswith("\\") else content)
    return sink.getvalue()


def test_backslashes_of_windows_are_separators() -> None:
    archive = zip_of("SKILL.md", "scripts\\", "scripts\\deep\\run.ps1", "a/b.txt")
    assert read(archive) == {"SKILL.md": b"x", "scripts/deep/run.ps1": b"x", "a/b.txt": b"x"}
    for name in ("..\\up", "C:\\up", "\\up", "a\\..\\..\\up", "a\\\\b"):
        with pytest.raises(InvalidBundle):
            read_zip(zip_of("SKILL.md", name))
    with pytest.raises(InvalidBundle, match="backslash"):
        read_zip(zip_of("SKILL.md", "a/b\\c"))


def test_a_folder_has_no_content() -> None:
    with pytest.raises(InvalidBundle, match="content"):
        read(make_entry("a/", stat.S_IFDIR | 0o755))


def patch(data: bytes, at: int, form: str, *values: int) -> bytes:
    changed = bytearray(data)
    struct.pack_into(form, changed, at, *values)
    return bytes(changed)


def find_header(data: bytes, signature: bytes, index: int) -> int:
    at = -1
    for _ in range(index + 1):
        at = data.index(signature, at + 1)
    return at


def central(data: bytes, index: int = 0) -> int:
    return find_header(data, b"PK\x01\x02", index)


def local(data: bytes, index: int) -> int:
    return find_header(data, b"PK\x03\x04", index)


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda _: b"",
    "text": lambda _: b"PK, but no archive at all, and longer than an end record",
    "cut off": lambda data: data[:-1],
    "trailing bytes": lambda data: data + b"x",
    "leading bytes": lambda data: b"PK" + data,
    "long comment": lambda _: make_zip(comment=b"x" * 2000),
    "comment with an archive": lambda data: make_zip(comment=data[-22:]),
    "two archives": lambda data: data + data,
    "encrypted": lambda data: patch(patch(data, 6, "<H", 1), central(data) + 8, "<H", 1),
    "bzip2": lambda _: make_zip(zipfile.ZIP_BZIP2),
    "name differs": lambda data: data.replace(b"SKILL.md", b"EVIL!.md", 1),
    "size lies": lambda data: patch(patch(data, central(data, 1) + 24, "<L", 9), local(data, 1) + 22, "<L", 9),
    "size lies in the directory": lambda data: patch(data, central(data, 1) + 24, "<L", 9),
    "wrong checksum": lambda data: patch(patch(data, central(data, 1) + 16, "<L", 9), local(data, 1) + 14, "<L", 9),
    "overlap": lambda data: patch(data, central(data, 2) + 42, "<L", 0),
    "zip64 size": lambda data: patch(data, central(data, 1) + 24, "<L", 0xFFFFFFFF),
    "zip64 count": lambda data: patch(data, len(data) - 12, "<H", 0xFFFF),
    "count lies": lambda data: patch(data, len(data) - 14, "<2H", 4, 4),
    "several disks": lambda data: patch(data, len(data) - 18, "<H", 1),
    "directory elsewhere": lambda data: patch(data, len(data) - 6, "<L", 0),
    "not utf-8": lambda data: data.replace(b"SKILL.md", b"SKILL.\xff\xff"),
    "damaged data": lambda data: patch(data, data.index(b"SKILL.md") + 8, "<L", 0xFFFFFFFF),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_malformed_archives_are_refused(change: str) -> None:
    with pytest.raises(InvalidBundle):
        read(CHANGES[change](make_zip()))


def test_a_bomb_is_refused_by_declared_and_by_actual_size() -> None:
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("SKILL.md", bytes(50_000_000))
    data = output.getvalue()
    with pytest.raises(InvalidBundle, match="larger than 1 MB"):
        read(data)
    small = patch(patch(data, central(data) + 24, "<L", 100), 22, "<L", 100)
    with pytest.raises(InvalidBundle, match="declared size"):
        read(small)


def test_too_many_entries() -> None:
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w") as archive:
        for number in range(ENTRIES_LIMIT + 1):
            archive.writestr(f"{number}/", b"")
    with pytest.raises(InvalidBundle, match="entries"):
        read(output.getvalue())


def test_mutations_are_refused_or_read_as_zipfile_reads_them() -> None:
    chance = random.Random(11)
    valid = [make_zip(as_stream=as_stream) for as_stream in (False, True)]
    accepted = 0
    for _ in range(4000):
        data = bytearray(chance.choice(valid))
        for _ in range(chance.randint(1, 2)):
            at = chance.randrange(len(data))
            data[at : at + chance.choice((0, 1, 1, 1, 2))] = chance.randbytes(1)
        try:
            found = read(bytes(data))
        except InvalidBundle:
            continue
        with zipfile.ZipFile(io.BytesIO(bytes(data))) as archive:
            wanted = {info.filename: archive.read(info) for info in archive.infolist() if not info.is_dir()}
        assert list(found.values()) == list(wanted.values())
        accepted += 1
    assert accepted > 100
