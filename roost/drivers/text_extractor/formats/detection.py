"""The format of a document: from its content first, then from its name, then from its MIME type. Pure."""

import io
import re
import zipfile
from enum import StrEnum

from roost.drivers.text_extractor.contract import UNPACKED_LIMIT

_MAX_MEMBERS = 10_000
_PDF_HEADER_BYTES = 1024
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_ENCRYPTED_PACKAGE = "EncryptedPackage".encode("utf-16-le")
_OPEN_DOCUMENT = b"application/vnd.oasis.opendocument.text"
_MIME_TYPE_MEMBER, _MIME_TYPE_BYTES = "mimetype", 100
_NOT_TEXT = (b"{\\rtf", b"%!PS", b"PK", b"\x1f\x8b", b"BZh", b"\x7fELF", b"GIF8", b"\xff\xd8\xff", b"\x89PNG")
"""Beginnings of formats without plain text, of which some have few bytes that no text has."""
_HTML_START = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*|<!--.{0,2000}?-->\s*)*<(?:!doctype\s+html|html)\b",
    re.IGNORECASE | re.DOTALL,
)
_HTML_NAME = re.compile(r"\.x?html?", re.IGNORECASE)
_HTML_MIME_TYPES = ("text/html", "application/xhtml+xml")


class DocumentFormat(StrEnum):
    PDF = "pdf"
    WORD = "word"
    POWERPOINT = "powerpoint"
    EXCEL = "excel"
    OPEN_DOCUMENT = "opendocument"
    HTML = "html"
    TEXT = "text"


class RefusalReason(StrEnum):
    """Reason to refuse a document, which travels from the sandbox to the server."""

    UNSUPPORTED = "unsupported"
    DAMAGED = "damaged"
    ENCRYPTED = "encrypted"
    DEPTH = "depth"
    TEXT_SIZE = "text_size"
    UNPACKED_SIZE = "unpacked_size"
    MEMORY = "memory"


class DocumentRefused(Exception):  # noqa: N818 - an answer, not a failure
    def __init__(self, reason: RefusalReason) -> None:
        self.reason = reason
        super().__init__(reason)


_OOXML_FOLDERS = {"word": DocumentFormat.WORD, "ppt": DocumentFormat.POWERPOINT, "xl": DocumentFormat.EXCEL}


def detect_format(source: bytes, name: str, mime_type: str) -> DocumentFormat:
    """Return the format, with `TEXT` for everything that may be text. Raises DocumentRefused."""
    if b"%PDF-" in source[:_PDF_HEADER_BYTES]:
        return DocumentFormat.PDF
    if source.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _detect_archive(source)
    if source.startswith(_OLE):
        is_encrypted = _ENCRYPTED_PACKAGE in source
        raise DocumentRefused(RefusalReason.ENCRYPTED if is_encrypted else RefusalReason.UNSUPPORTED)
    if source.startswith(_NOT_TEXT):
        raise DocumentRefused(RefusalReason.UNSUPPORTED)
    return DocumentFormat.HTML if _is_html(source, name, mime_type) else DocumentFormat.TEXT


def _is_html(source: bytes, name: str, mime_type: str) -> bool:
    if _HTML_START.match(source[:4096]):
        return True
    extension = name[name.rfind(".") :] if "." in name else ""
    if extension:
        return _HTML_NAME.fullmatch(extension) is not None
    return mime_type.partition(";")[0].strip().lower() in _HTML_MIME_TYPES


def _detect_archive(source: bytes) -> DocumentFormat:
    """Return the format of a zip archive that is no bomb by its own directory, whose sizes unpacking enforces."""
    try:
        with zipfile.ZipFile(io.BytesIO(source)) as archive:
            members = archive.infolist()
            if len(members) > _MAX_MEMBERS or sum(member.file_size for member in members) > UNPACKED_LIMIT:
                raise DocumentRefused(RefusalReason.UNPACKED_SIZE)
            if any(member.flag_bits & 1 for member in members):
                raise DocumentRefused(RefusalReason.ENCRYPTED)
            return _detect_members(archive, {member.filename for member in members})
    except (zipfile.BadZipFile, NotImplementedError, OSError, EOFError, ValueError):
        raise DocumentRefused(RefusalReason.DAMAGED) from None


def _detect_members(archive: zipfile.ZipFile, names: set[str]) -> DocumentFormat:
    if "[Content_Types].xml" in names:
        folders = {name.partition("/")[0] for name in names}
        if found := next((found for folder, found in _OOXML_FOLDERS.items() if folder in folders), None):
            return found
    if _MIME_TYPE_MEMBER in names:
        with archive.open(_MIME_TYPE_MEMBER) as member:
            if member.read(_MIME_TYPE_BYTES).startswith(_OPEN_DOCUMENT):
                return DocumentFormat.OPEN_DOCUMENT
    raise DocumentRefused(RefusalReason.UNSUPPORTED)
