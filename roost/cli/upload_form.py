"""A file or folder of this machine as an upload: what is in it, and the form that carries it, read while it is sent."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from roost.cli.output import ExitCode, fail
from roost.core import ids
from roost.core.sanitize import is_storable
from roost.storage.uploads.errors import InvalidUpload
from roost.storage.uploads.upload_paths import path_of

_PIECE = 1024 * 1024
_NEITHER = "is neither a file nor a folder"


@dataclass(frozen=True)
class LocalFile:
    """A file: where it is, its path as the upload names it (`folder/a.txt`), and its bytes."""

    place: Path
    name: str
    size: int


def found(path: Path) -> Sequence[LocalFile]:
    """The file, or all files in the folder. A form cannot carry folders without files, so these are left out.

    Leaves the program when there is nothing to upload, something that is neither a file nor a folder, or a name that no
    server takes.
    """
    path = path.absolute()
    name = path.resolve().name
    if path.is_file():
        files = [LocalFile(path, name, path.stat().st_size)]
    elif path.is_dir():
        files = list(_below(path, name))
    elif path.exists():
        fail(f"{path} {_NEITHER}.", ExitCode.USAGE)
    else:
        files = []
    if not files:
        fail(f"{path}: there is no file{' in it' if path.is_dir() else ''}.", ExitCode.USAGE)
    for file in files:
        _check(file)
    return files


class MultipartForm:
    """multipart/form-data (RFC 7578): the fields, then the files. Iterating gives its bytes."""

    def __init__(self, fields: Mapping[str, str], files: Sequence[LocalFile]) -> None:
        self._boundary = ids.random_bytes(16).hex()
        self._fields = b"".join(
            self._head(f'name="{name}"') + f"{value}\r\n".encode() for name, value in fields.items()
        )
        self._files = files
        self._end = f"--{self._boundary}--\r\n".encode()

    @property
    def headers(self) -> Mapping[str, str]:
        inside = sum(len(self._head_of(file)) + file.size + 2 for file in self._files)
        length = len(self._fields) + inside + len(self._end)
        return {"Content-Type": f"multipart/form-data; boundary={self._boundary}", "Content-Length": str(length)}

    def __iter__(self) -> Iterator[bytes]:
        yield self._fields
        for file in self._files:
            yield self._head_of(file)
            yield from content(file)
            yield b"\r\n"
        yield self._end

    def _head_of(self, file: LocalFile) -> bytes:
        return self._head(f'name="file"; filename="{_quoted(file.name)}"')

    def _head(self, disposition: str) -> bytes:
        return f"--{self._boundary}\r\nContent-Disposition: form-data; {disposition}\r\n\r\n".encode()


def content(file: LocalFile) -> Iterator[bytes]:
    """The bytes of a file, as many as it had when it was found. Leaves the program when it cannot be read to there."""
    left = file.size
    try:
        with file.place.open("rb", buffering=0) as opened:
            while left and (piece := opened.read(min(left, _PIECE))):
                left -= len(piece)
                yield piece
    except OSError as error:
        fail(f"{file.place}: {error.strerror}", ExitCode.USAGE)
    if left:
        fail(f"{file.place} became shorter while it was read.")


def keyvalues(pairs: Sequence[str]) -> dict[str, str]:
    """`["a=1"]` as an object. Leaves the program when there is no `=`."""
    for pair in pairs:
        if "=" not in pair:
            fail(f"{pair}: write a note as NAME=VALUE.", ExitCode.USAGE)
    return dict(pair.split("=", 1) for pair in pairs)


def fields_of(given: Mapping[str, str | Mapping[str, str] | None]) -> Mapping[str, str]:
    """The fields that have a value, as a form writes them."""
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in given.items() if value}


def _check(file: LocalFile) -> None:
    if not is_storable(file.name):
        fail(f"{file.place}: its name is no text (UTF-8).", ExitCode.USAGE)
    try:
        path_of(file.name)
    except InvalidUpload as error:
        fail(f"{file.place}: {error.message}", ExitCode.USAGE)


def _below(folder: Path, name: str) -> Iterator[LocalFile]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        fail(f"{folder}: {error.strerror}", ExitCode.USAGE)
    for entry in entries:
        place, inside = Path(entry.path), f"{name}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from _below(place, inside)
        elif entry.is_file(follow_symlinks=False):
            yield LocalFile(place, inside, entry.stat().st_size)
        else:
            fail(f"{place} {_NEITHER} (links are not followed).", ExitCode.USAGE)


def _quoted(name: str) -> str:
    """As browsers write it (HTML, multipart/form-data encoding algorithm), which has no way to write these codes."""
    if any(code in name for code in ("%22", "%0A", "%0D")):
        fail(f"{name}: an upload cannot carry this name.", ExitCode.USAGE)
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
