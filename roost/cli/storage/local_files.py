"""Local files and folders: the multipart form that uploads them, and their CID, computed as servers do."""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from roost.cli.output.output import ExitCode, exit_with_error, file_errors
from roost.core import ids
from roost.core.sanitize import is_storable
from roost.storage.content.unixfs.directory import DirectoryEntry, build_folder
from roost.storage.content.unixfs.importer import DagTree, UnixfsImporter
from roost.storage.content.unixfs.profile import ImportProfile
from roost.storage.files.uploads.model import InvalidUpload, parse_upload_path

_CHUNK_BYTES = 1024 * 1024
_NOT_UPLOADABLE = "is neither a file nor a folder"
_FolderNode = dict[str, "DagTree | _FolderNode"]


@dataclass(frozen=True)
class LocalFile:
    """A local file with its name in the upload (`folder/a.txt`) and its size in bytes."""

    path: Path
    name: str
    size: int


def find_files(path: Path) -> Sequence[LocalFile]:
    """Return the file, or all files in the folder; a form cannot carry empty folders.

    Exits if there is no file, a special file or link, or a name that servers reject.
    """
    path = path.absolute()
    name = path.resolve().name
    if path.is_file():
        files = [LocalFile(path, name, path.stat().st_size)]
    elif path.is_dir():
        files = list(_scan_folder(path, name))
    elif path.exists():
        exit_with_error(f"{path} {_NOT_UPLOADABLE}.", ExitCode.USAGE)
    else:
        files = []
    if not files:
        exit_with_error(f"{path} {'contains no files' if path.is_dir() else 'does not exist'}.", ExitCode.USAGE)
    for file in files:
        _check_name(file)
    return files


class MultipartForm:
    """A multipart/form-data body (RFC 7578), fields before files; iterating yields its bytes."""

    def __init__(self, fields: Mapping[str, str], files: Sequence[LocalFile]) -> None:
        self._boundary = ids.random_bytes(16).hex()
        self._fields = b"".join(
            self._part_head(f'name="{name}"') + f"{value}\r\n".encode() for name, value in fields.items()
        )
        self._files = files
        self._end = f"--{self._boundary}--\r\n".encode()

    @property
    def headers(self) -> Mapping[str, str]:
        files = sum(len(self._file_head(file)) + file.size + 2 for file in self._files)
        length = len(self._fields) + files + len(self._end)
        return {"Content-Type": f"multipart/form-data; boundary={self._boundary}", "Content-Length": str(length)}

    def __iter__(self) -> Iterator[bytes]:
        yield self._fields
        for file in self._files:
            yield self._file_head(file)
            yield from read_content(file)
            yield b"\r\n"
        yield self._end

    def _file_head(self, file: LocalFile) -> bytes:
        return self._part_head(f'name="file"; filename="{_quote_filename(file.name)}"')

    def _part_head(self, disposition: str) -> bytes:
        return f"--{self._boundary}\r\nContent-Disposition: form-data; {disposition}\r\n\r\n".encode()


def read_content(file: LocalFile) -> Iterator[bytes]:
    """Yield the file's first `size` bytes. Exits if it cannot be read or has become shorter."""
    left = file.size
    with file_errors(file.path), file.path.open("rb", buffering=0) as opened:
        while left and (chunk := opened.read(min(left, _CHUNK_BYTES))):
            left -= len(chunk)
            yield chunk
    if left:
        exit_with_error(f"{file.path} became shorter while it was being read.")


def parse_keyvalues(pairs: Sequence[str]) -> dict[str, str]:
    """Parse `["a=1"]` into a dictionary. Exits if a pair has no `=`."""
    for pair in pairs:
        if "=" not in pair:
            exit_with_error(f"{pair!r} must have the form NAME=VALUE.", ExitCode.USAGE)
    return dict(pair.split("=", 1) for pair in pairs)


def form_fields(values: Mapping[str, str | Mapping[str, str] | None]) -> Mapping[str, str]:
    """Encode the non-empty values as text fields."""
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in values.items() if value}


def _check_name(file: LocalFile) -> None:
    if not is_storable(file.name):
        exit_with_error(f"{file.path}: the name is not UTF-8 text.", ExitCode.USAGE)
    try:
        parse_upload_path(file.name)
    except InvalidUpload as error:
        exit_with_error(f"{file.path}: {error.message}", ExitCode.USAGE)


def _scan_folder(folder: Path, name: str) -> Iterator[LocalFile]:
    with file_errors(folder):
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    for entry in entries:
        path, inner_name = Path(entry.path), f"{name}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from _scan_folder(path, inner_name)
        elif entry.is_file(follow_symlinks=False):
            yield LocalFile(path, inner_name, entry.stat().st_size)
        else:
            exit_with_error(f"{path} {_NOT_UPLOADABLE} (links are not followed).", ExitCode.USAGE)


def _quote_filename(name: str) -> str:
    """Encode a file name as browsers do (HTML, multipart/form-data encoding); the codes themselves have no encoding."""
    if any(code in name for code in ("%22", "%0A", "%0D")):
        exit_with_error(f"{name}: an upload cannot carry this name.", ExitCode.USAGE)
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


def import_files(files: Sequence[LocalFile], profile: ImportProfile, advance: Callable[[int], None]) -> DagTree:
    """Import the file, or the folder that contains all files. advance: called with the bytes of each chunk."""
    (only,) = nest_trees({file.name: _import_file(file, profile, advance) for file in files}).values()
    return build_tree(only, profile)


def nest_trees(trees: Mapping[str, DagTree]) -> _FolderNode:
    """Arrange trees in folders, by their paths."""
    top: _FolderNode = {}
    for path, tree in trees.items():
        *folders, name = path.split("/")
        parent = top
        for segment in folders:
            child = parent.setdefault(segment, {})
            assert isinstance(child, dict)  # a file system has no name twice
            parent = child
        parent[name] = tree
    return top


def _import_file(file: LocalFile, profile: ImportProfile, advance: Callable[[int], None]) -> DagTree:
    importer = UnixfsImporter(profile)
    for chunk in read_content(file):
        importer.update(chunk)
        advance(len(chunk))
    return importer.finish()


def build_tree(node: "DagTree | _FolderNode", profile: ImportProfile) -> DagTree:
    """Build the folders of a tree."""
    if isinstance(node, DagTree):
        return node
    children = {name: build_tree(child, profile) for name, child in node.items()}
    return build_folder(
        profile, (DirectoryEntry(name, tree.cid, tree.size, tree.tsize) for name, tree in children.items())
    )
