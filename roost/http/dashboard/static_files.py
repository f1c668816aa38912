"""The built files of the dashboard, from memory: compressed once, found by their path alone."""

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

BUILT_FILES = Path(__file__).with_name("static")
"""Where `make dashboard` leaves them; absent until then."""
INDEX = "/index.html"
_HASHED = "/assets/"  # the bundler names these files by their content
_MEDIA_TYPES: Mapping[str, str] = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
_COMPRESSED = frozenset({".css", ".html", ".js", ".json", ".svg", ".txt", ".webmanifest"})
_SMALLEST = 512  # bytes; less is not worth a coding


@dataclass(frozen=True)
class StaticFile:
    """A file with its gzip form, None where that saves nothing. is_hashed: its name changes with its content."""

    media_type: str
    content: bytes
    compressed: bytes | None
    is_hashed: bool

    @cached_property
    def tag(self) -> str:
        return hashlib.sha256(self.content).hexdigest()[:32]


class StaticFiles:
    """The files of a folder at the time when it was made; each is read when it is asked for first."""

    def __init__(self, folder: Path) -> None:
        self._paths = {
            f"/{path.relative_to(folder).as_posix()}": path
            for path in (sorted(folder.rglob("*")) if folder.is_dir() else ())
            if path.is_file() and not path.is_symlink() and path.suffix != ".gz"
        }
        self._files: dict[str, StaticFile] = {}

    @property
    def is_built(self) -> bool:
        return INDEX in self._paths

    def find(self, path: str) -> StaticFile | None:
        """Return the file at a path; None if there was none, or if it was replaced by another build since."""
        if (found := self._files.get(path)) is not None:
            return found
        if (source := self._paths.get(path)) is None:
            return None
        try:
            file = _read_file(source, is_hashed=path.startswith(_HASHED))
        except FileNotFoundError:
            return None
        self._files[path] = file
        return file


def _read_file(source: Path, *, is_hashed: bool) -> StaticFile:
    content, compressed = source.read_bytes(), None
    if source.suffix in _COMPRESSED and len(content) >= _SMALLEST:
        built = source.with_name(f"{source.name}.gz")
        compressed = built.read_bytes() if built.is_file() else gzip.compress(content, mtime=0)
        compressed = compressed if len(compressed) < len(content) else None
    media_type = _MEDIA_TYPES.get(source.suffix, "application/octet-stream")
    return StaticFile(media_type, content, compressed, is_hashed)
