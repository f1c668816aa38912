"""Bundles: the files of one skill, however they arrive, within limits and with portable paths. Pure."""

import re
import unicodedata
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from roost.agents.library.skills.errors import InvalidBundle
from roost.agents.library.skills.zip_archive import read_zip_entries

FILES_LIMIT = 200
BYTES_LIMIT = 10 * 1000**2
ARCHIVE_LIMIT = BYTES_LIMIT + 1000**2
DEPTH_LIMIT = 8
SEGMENT_LIMIT = 100
PATH_LIMIT = 240
"""Maximum bytes of a path, and of each name in it."""
SKILL_FILE = "SKILL.md"

_IGNORED_FOLDER, _IGNORED_FILES = "__MACOSX", (".DS_Store", "Thumbs.db", "desktop.ini")
"""Written into archives by file managers."""
_DRIVE = re.compile(r"[A-Za-z]:")
_GIT_NAMES = re.compile(r"\.git|git~[0-9]+", re.IGNORECASE)
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_ZIP = b"PK\x03\x04"
_ZIP_EPOCH, _ZIP_UNIX = (1980, 1, 1, 0, 0, 0), 3
_FILE_MODE, _PROGRAM_MODE = 0o100644, 0o100755


@dataclass(frozen=True)
class BundleFile:
    content: bytes
    is_executable: bool = False


@dataclass(frozen=True)
class Bundle:
    """Files by their relative POSIX path, sorted; `SKILL.md` is one of them."""

    files: Mapping[str, BundleFile]


def read_zip(data: bytes) -> Bundle:
    """Read a zip archive. Raises InvalidBundle."""
    if len(data) > ARCHIVE_LIMIT:
        raise InvalidBundle(f"The archive is larger than {ARCHIVE_LIMIT // 1000**2} MB")
    collector = _BundleCollector()
    for entry in read_zip_entries(data, BYTES_LIMIT):
        if entry.is_folder:
            check_path(entry.path)
        else:
            collector.add_file(entry.path, entry.content, is_executable=entry.is_executable)
    return collector.finish()


def read_files(files: Iterable[tuple[str, bytes]]) -> Bundle:
    """Collect files by their paths; one with a `#!` line is executable. Raises InvalidBundle."""
    collector = _BundleCollector()
    for path, content in files:
        collector.add_file(path, content)
    return collector.finish()


def check_path(path: str) -> None:
    """Check a relative path. Raises InvalidBundle."""
    if path.startswith(("/", "~")) or _DRIVE.match(path):
        raise InvalidBundle(f"{path!r} is not a relative path")
    if "\\" in path:
        raise InvalidBundle(f"{path!r} has a backslash")
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        raise InvalidBundle(f"{path!r} is not valid Unicode") from None
    if size > PATH_LIMIT:
        raise InvalidBundle(f"{path[:SEGMENT_LIMIT]!r}... is longer than {PATH_LIMIT} bytes")
    segments = path.split("/")
    if len(segments) > DEPTH_LIMIT:
        raise InvalidBundle(f"{path!r} is deeper than {DEPTH_LIMIT} levels")
    for segment in segments:
        _check_segment(segment, path)


def _check_segment(segment: str, path: str) -> None:
    if segment in ("", ".", ".."):
        raise InvalidBundle(f"{path!r} has an empty, `.` or `..` segment")
    if len(segment.encode()) > SEGMENT_LIMIT:
        raise InvalidBundle(f"{path!r} has a name longer than {SEGMENT_LIMIT} bytes")
    if any(unicodedata.category(char) in _INVISIBLE for char in segment):
        raise InvalidBundle(f"{path!r} has a control or invisible character")
    if segment != segment.strip() or segment.endswith(".") or any(char in '<>:"|?*' for char in segment):
        raise InvalidBundle(f"{path!r} is not a portable name")
    if _GIT_NAMES.fullmatch(unicodedata.normalize("NFKC", segment)):
        raise InvalidBundle(f"{path!r} belongs to a Git repository")


class _BundleCollector:
    """Files of a bundle in the making; the limits hold while it grows."""

    def __init__(self) -> None:
        self._files: dict[str, BundleFile] = {}
        self._spellings: dict[str, str] = {}  # of files and folders: normalized path -> path
        self._size = 0

    def add_file(self, path: str, content: bytes, *, is_executable: bool = False) -> None:
        check_path(path)
        segments = path.split("/")
        if _IGNORED_FOLDER in segments[:2] or segments[-1] in _IGNORED_FILES:
            return
        self._size += len(content)
        if self._size > BYTES_LIMIT:
            raise InvalidBundle(f"The files are larger than {BYTES_LIMIT // 1000**2} MB in all")
        if len(self._files) == FILES_LIMIT:
            raise InvalidBundle(f"More than {FILES_LIMIT} files")
        if path in self._files:
            raise InvalidBundle(f"{path!r} occurs twice")
        for end in range(1, len(segments) + 1):
            self._check_spelling("/".join(segments[:end]))
        self._files[path] = BundleFile(content, is_executable or content.startswith(b"#!"))

    def finish(self) -> Bundle:
        for path in self._files:
            if any(parent in self._files for parent in _parents(path)):
                raise InvalidBundle(f"{path!r} is below a file")
        files = self._files if SKILL_FILE in self._files else _strip_top_folder(self._files)
        if SKILL_FILE not in files:
            raise InvalidBundle(f"{SKILL_FILE} is missing at the top of the folder")
        return Bundle(dict(sorted(files.items())))

    def _check_spelling(self, path: str) -> None:
        """Refuse two paths that some file systems take for one."""
        folded = unicodedata.normalize("NFKC", path).casefold()
        normalized = unicodedata.normalize("NFKC", folded)  # again, because folding can leave another form
        known = self._spellings.setdefault(normalized, path)
        if known != path:
            raise InvalidBundle(f"{known!r} and {path!r} are the same on some file systems")


def _parents(path: str) -> Iterable[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _strip_top_folder(files: Mapping[str, BundleFile]) -> Mapping[str, BundleFile]:
    tops = {path.partition("/")[0] for path in files}
    if len(tops) != 1 or not all("/" in path for path in files):
        return files
    stripped = {path.partition("/")[2]: file for path, file in files.items()}
    for path in stripped:
        check_path(path)  # `x/~/y` is relative, `~/y` is not
    return stripped


class BundleUpload:
    """Collects the files of a form, those of a folder or one zip archive; the limit of its body bounds them."""

    def __init__(self) -> None:
        self._files: list[tuple[str, bytes]] = []
        self._current = bytearray()
        self.size = 0
        """Bytes received."""

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        self._current += data
        self.size += len(data)

    async def end_file(self, filename: str) -> None:
        """End the current file, named like `folder/a.txt`. Raises InvalidBundle."""
        if len(self._files) > FILES_LIMIT:
            raise InvalidBundle(f"More than {FILES_LIMIT} files")
        self._files.append((filename, bytes(self._current)))
        self._current.clear()

    def finish(self) -> Bundle:
        """Return the bundle. Blocking; raises InvalidBundle."""
        if not self._files:
            raise InvalidBundle("A file is required")
        if len(self._files) == 1 and self._files[0][1].startswith(_ZIP):
            return read_zip(self._files[0][1])
        return read_files(self._files)


class _ZipSink:
    """Collects what `zipfile` writes; without a position, it writes from begin to end."""

    def __init__(self) -> None:
        self.content = bytearray()

    def write(self, data: bytes) -> int:
        self.content += data
        return len(data)

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass


def write_zip(bundle: Bundle) -> bytes:
    """Return a zip archive of the files, `SKILL.md` at its top; the same bytes for the same files.

    It is not compressed: anyone may ask for it, and 10 MB would cost half a second of processor time.
    """
    sink = _ZipSink()
    with zipfile.ZipFile(sink, "w") as archive:
        for path, file in sorted(bundle.files.items()):
            entry = zipfile.ZipInfo(path, _ZIP_EPOCH)
            entry.create_system = _ZIP_UNIX
            entry.external_attr = (_PROGRAM_MODE if file.is_executable else _FILE_MODE) << 16
            archive.writestr(entry, file.content)
    return bytes(sink.content)
