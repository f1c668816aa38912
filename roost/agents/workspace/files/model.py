"""Paths, names and contents of files, pages of a listing, and ranges of a file. Pure."""

import base64
import binascii
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from roost.core.entity_tags import ANY_TAG
from roost.core.problem import (
    InvalidInput,
    NotFound,
    PayloadTooLarge,
    PreconditionFailed,
    ResourceConflict,
    ServiceUnavailable,
)
from roost.storage.content.unixfs.entry_name import decode_entry_name, encode_entry_name
from roost.storage.content.unixfs.errors import InvalidEntryName
from roost.warden_client.files import FileStat, Stamp


class InvalidFilePath(InvalidInput):
    message = "Invalid path"


class WorkspaceFileNotFound(NotFound):
    message = "File not found"


class WorkspaceFileUnreadable(InvalidInput):
    """A folder, a pipe, a socket or a device."""

    message = "Not a regular file"


class InvalidFilename(InvalidInput):
    message = "Invalid filename"
    field = "filename"


class InvalidFileContent(InvalidInput):
    message = "Invalid contentBase64"
    field = "contentBase64"


class WorkspaceFileTooLarge(PayloadTooLarge):
    message = "File too large"


class FileExists(ResourceConflict):
    message = "File exists"


class FolderNotEmpty(ResourceConflict):
    message = "Folder not empty"


class NotAFolder(InvalidInput):
    message = "Not a folder"


class FolderTooLarge(InvalidInput):
    """More than 100,000 entries in a folder, or more than 256 nested folders."""

    message = "Folder too large to list"


class FilesNotWatched(ServiceUnavailable):
    """More folders than can be watched."""

    message = "Too many folders to watch"


class AgentDiskFull(ServiceUnavailable):
    message = "Disk full"


class FileNotAsExpected(PreconditionFailed):
    """The file is missing, or another one than the caller knows."""

    message = "The file has changed since it was read: read it again"


class ConditionalWriteUnsupported(ResourceConflict):
    """The container runs since before an update of the server."""

    message = "The agent's container is older than the server: stop the server with its agents, and start it again"


class FileChanged(ServiceUnavailable):
    """The file became shorter while it was sent."""

    message = "The file changed while it was sent"


FILE_LIMIT = 10 * 1024**2
UPLOADS = "uploads"
PAGE_LIMIT = 1000
_RANGE = re.compile(r"bytes=(?:([0-9]{1,18})-([0-9]{1,18})?|-([0-9]{1,18}))", re.ASCII)
_ETAG = re.compile(r'"(-?[0-9a-f]{1,16})\.([0-9a-f]{1,16})\.([0-9a-f]{1,16})"', re.ASCII)
_STAMP_LIMIT = 1 << 64
_NAME_BYTES = 255
_PATH_BYTES = 4096
_FILENAME_RULE = (
    "filename: must be one name that every operating system takes: at most 255 bytes, printable, without / and \\ and "
    '< > : " | ? *, no space around it, no dot at its end, and no device of Windows'
)
_WINDOWS_DEVICES = re.compile(r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?")


@dataclass(frozen=True)
class FileRange:
    """Part of a file: from `offset`, or from the end if it is negative; at most `length` bytes."""

    offset: int = 0
    length: int | None = None

    def resolve(self, size: int) -> tuple[int, int]:
        """Return begin and end of the part in a file of that size; both are equal if the part is empty."""
        begin = max(size + self.offset, 0) if self.offset < 0 else min(self.offset, size)
        return begin, size if self.length is None else min(begin + self.length, size)


def format_etag(found: FileStat) -> str | None:
    """Return the entity tag of a file, None if there is no stamp to make one of.

    It is weak for a file that changed just now, because another change could have the same stamp (RFC 9110, 8.8.1).
    """
    stamp = found.stamp
    if stamp is None or not all(abs(part) < _STAMP_LIMIT for part in stamp):
        return None
    weak = "" if stamp.ctime_ns else "W/"
    return f'{weak}"{stamp.mtime_ns:x}.{stamp.ctime_ns:x}.{stamp.inode:x}"'


def parse_etags(tags: Collection[str]) -> Sequence[Stamp]:
    """Return the stamps of strong entity tags, none for any file. Raises FileNotAsExpected if no file can match."""
    if ANY_TAG in tags:
        return ()
    matches = filter(None, map(_ETAG.fullmatch, tags))
    stamps = [Stamp(*(int(part, 16) for part in match.groups())) for match in matches]
    if not stamps:
        raise FileNotAsExpected
    return stamps


def encode_cursor(name: str) -> str:
    """Return the cursor that continues after an entry; its name may hold any bytes."""
    return base64.urlsafe_b64encode(name.encode("utf-8", "surrogateescape")).rstrip(b"=").decode()


def decode_cursor(cursor: str, folder: str) -> str:
    """Return the name of a cursor's entry, which stands in the folder. Raises InvalidFilePath."""
    try:
        name = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
    except (ValueError, UnicodeError):
        raise InvalidFilePath from None
    path = name.decode("utf-8", "surrogateescape")
    if not name or b"\0" in name or len(name) > _PATH_BYTES or not (folder == "." or path.startswith(f"{folder}/")):
        raise InvalidFilePath
    return path


def parse_range(header: str | None) -> FileRange | None:
    """Return the part that a `Range` header with one range asks for (RFC 9110, 14); None for all others."""
    match = _RANGE.fullmatch((header or "").replace(" ", ""))
    if match is None:
        return None
    first, last, suffix = (None if number is None else int(number) for number in match.groups())
    if first is None:
        return FileRange(-suffix, None) if suffix else FileRange(0, 0)
    if last is not None and last < first:
        return None
    return FileRange(first, None if last is None else last + 1 - first)


def validate_path(path: str) -> str:
    """Return the path of what exists, relative to the workspace, from its spelling. Raises InvalidFilePath.

    A leading `/workspace/` is removed, because agents see the workspace at that path. All names are taken that programs
    can make, with line breaks, backslashes and bytes that are not UTF-8, so that what a list names can be opened.
    """
    try:
        path = decode_entry_name(path.removeprefix("/workspace/"))
    except InvalidEntryName:
        raise InvalidFilePath from None
    parts = path.split("/")
    if not path or len(path.encode("utf-8", "replace")) > _PATH_BYTES or path.startswith("/") or ".." in parts:
        raise InvalidFilePath
    if "\0" in path:
        raise InvalidFilePath
    return path


def validate_new_path(path: str) -> str:
    """Return the path of what is created, which has no control characters and no backslash. Raises InvalidFilePath."""
    path = validate_path(path)
    if "\\" in path or not path.isprintable():
        raise InvalidFilePath
    return path


def spell_path(path: str) -> str:
    """Return how a path is spelled in answers: bytes that are not UTF-8 are private-use characters."""
    try:
        return encode_entry_name(path)
    except InvalidEntryName:  # crafted by the container; no file has this name
        return path.encode("utf-8", "replace").decode()


def validate_filename(name: str) -> str:
    """Return a file name without folders that is valid on every operating system. Raises InvalidFilename."""
    too_long = len(name.encode("utf-8", "replace")) > _NAME_BYTES
    if not name or too_long or name != name.strip() or name.endswith(".") or not name.isprintable():
        raise InvalidFilename(detail=_FILENAME_RULE)
    if any(char in name for char in '/\\<>:"|?*') or name.lower() == ".git" or _WINDOWS_DEVICES.fullmatch(name):
        raise InvalidFilename(detail=_FILENAME_RULE)
    return name


def decode_content(content: str) -> bytes:
    """Decode strict base64 (RFC 4648 section 4, no white space). Raises InvalidFileContent, WorkspaceFileTooLarge."""
    if len(content) > FILE_LIMIT * 4 // 3 + 4:
        raise WorkspaceFileTooLarge
    try:
        content_bytes = base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidFileContent from None
    if len(content_bytes) > FILE_LIMIT:
        raise WorkspaceFileTooLarge
    return content_bytes
