"""Sites of built files, from memory: compressed once, found by their path alone, with ETags."""

import gzip
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from roost.core import ids
from roost.core.entity_tags import is_not_modified
from roost.web.url_rule import UrlFamily, rule_of

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
_HEADERS: Mapping[str, str] = {
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_IMAGE_DOCUMENT = "image/svg+xml"  # would run scripts as a page of its own
NONCE = b"__NONCE__"
"""Stands in built pages for the nonce of their inline styles."""


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
    """The files of a folder when it was there first; each is read when it is asked for first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._paths: Mapping[str, Path] = {}
        self._files: dict[str, StaticFile] = {}

    @property
    def is_built(self) -> bool:
        return INDEX in self._list_paths()

    def find(self, path: str) -> StaticFile | None:
        """Return the file at a path; None if there was none, or if it was replaced by another build since."""
        if (found := self._files.get(path)) is not None:
            return found
        if (source := self._list_paths().get(path)) is None:
            return None
        try:
            file = _read_file(source, is_hashed=path.startswith(_HASHED))
        except FileNotFoundError:
            return None
        self._files[path] = file
        return file

    def _list_paths(self) -> Mapping[str, Path]:
        if not self._paths and self._folder.is_dir():  # a build beside the server makes it, in one step
            self._paths = {
                f"/{path.relative_to(self._folder).as_posix()}": path
                for path in sorted(self._folder.rglob("*"))
                if path.is_file() and not path.is_symlink() and path.suffix != ".gz"  # those are forms of other files
            }
        return self._paths


def _read_file(source: Path, *, is_hashed: bool) -> StaticFile:
    content, compressed = source.read_bytes(), None
    if source.suffix in _COMPRESSED and len(content) >= _SMALLEST:
        built = source.with_name(f"{source.name}.gz")
        compressed = built.read_bytes() if built.is_file() else gzip.compress(content, mtime=0)
        compressed = compressed if len(compressed) < len(content) else None
    media_type = _MEDIA_TYPES.get(source.suffix, "application/octet-stream")
    return StaticFile(media_type, content, compressed, is_hashed)


class StaticSite(ABC):
    """ASGI application of the files of one family of paths; it passes every other request on."""

    family: ClassVar[UrlFamily]

    def __init__(self, next_app: ASGIApp, files: StaticFiles) -> None:
        self._next_app = next_app
        self._files = files

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_own = scope["type"] == "http" and rule_of(scope).family is self.family
        is_read = is_own and scope["method"] in {"GET", "HEAD"}
        response = self._find_response(scope, Headers(scope=scope)) if is_read else None
        if response is not None and scope["method"] == "HEAD":
            response.body = b""  # the headers keep the length of what GET gets
        await (response or self._next_app)(scope, receive, send)

    @abstractmethod
    def _find_response(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the response to GET at a path; None for what the next application answers."""


def file_response(file: StaticFile, headers: Headers, policy: str = "", status: int = 200) -> Response:
    """Return a file, or 304 if the request has it. policy: the content security policy of the response."""
    is_compressed = file.compressed is not None and _accepts_gzip(headers.get("accept-encoding", ""))
    tag = f'"{file.tag}{"-gzip" if is_compressed else ""}"'
    fields = {
        "cache-control": "public, max-age=31536000, immutable" if file.is_hashed else "no-cache",
        "content-type": file.media_type,
        "etag": tag,
        "vary": "accept-encoding",
    }
    if file.media_type == _IMAGE_DOCUMENT:
        policy = "default-src 'none'; frame-ancestors 'none'; sandbox"
    if policy:
        fields["content-security-policy"] = policy
    if is_not_modified(headers.get("if-none-match"), tag):
        return make_response(304, b"", fields)
    if is_compressed:
        fields["content-encoding"] = "gzip"
    return make_response(status, (file.compressed or b"") if is_compressed else file.content, fields)


def page_response(page: StaticFile, policy: str, status: int = 200) -> Response:
    """Return a page with a nonce of its own, which its policy names where it has `{nonce}`."""
    nonce = ids.random_bytes(16).hex()
    headers = {
        "cache-control": "no-cache",
        "content-type": page.media_type,
        "content-security-policy": policy.format(nonce=nonce),
    }
    return make_response(status, page.content.replace(NONCE, nonce.encode()), headers)


def text_response(text: str, status: int = 200, **fields: str) -> Response:
    """Return a plain text, with further header fields."""
    headers = {"cache-control": "no-store", "content-type": "text/plain; charset=utf-8", **fields}
    return make_response(status, text.encode(), headers)


def make_response(status: int, content: bytes, headers: Mapping[str, str]) -> Response:
    return Response(content, status, {**_HEADERS, **headers})


def _accepts_gzip(accepted: str) -> bool:
    """Return whether `Accept-Encoding` admits gzip (RFC 9110, 12.5.3)."""
    for part in accepted.lower().split(","):
        name, _, quality = part.replace(" ", "").partition(";q=")
        if name == "gzip":
            return not quality or bool(quality.strip("0."))
    return False
