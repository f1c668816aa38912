"""Checks of whole files by their bytes: programs, archives, binary content, and the text of the others. Pure."""

import re
from collections.abc import Iterator

_PROGRAMS = {
    b"\x7fELF": "ELF program",
    b"\xfe\xed\xfa\xce": "Mach-O program",
    b"\xfe\xed\xfa\xcf": "Mach-O program",
    b"\xce\xfa\xed\xfe": "Mach-O program",
    b"\xcf\xfa\xed\xfe": "Mach-O program",
    b"\xca\xfe\xba\xbe": "Mach-O program or Java class",
    b"\0asm": "WebAssembly program",
    b"dex\n": "Android program",
    b"\x1bLua": "Lua bytecode",
}
_ARCHIVES = {
    b"PK\x03\x04": "zip archive",
    b"PK\x05\x06": "zip archive",
    b"\x1f\x8b": "gzip archive",
    b"BZh": "bzip2 archive",
    b"\xfd7zXZ": "xz archive",
    b"7z\xbc\xaf": "7z archive",
    b"Rar!": "RAR archive",
    b"\x28\xb5\x2f\xfd": "Zstandard archive",
    b"!<arch>\n": "ar archive",
}
_MEDIA = (
    b"\x89PNG\r\n\x1a\n",
    b"\xff\xd8\xff",
    b"GIF87a",
    b"GIF89a",
    b"%PDF-",
    b"\0\0\x01\0",
    b"wOFF",
    b"wOF2",
    b"\0\x01\0\0",
    b"OTTO",
    b"OggS",
    b"ID3",
    b"fLaC",
)
_MEDIA_AT = {b"WEBP": 8, b"WAVE": 8, b"ftyp": 4}
"""Known formats that are not searched, because nothing runs them."""
_PYC_VERSIONS = range(3000, 4200)  # magic numbers of CPython 3
_DOCUMENT = re.compile(
    r"\.(?:md|txt|rst|json|ya?ml|toml|csv|tsv|xml|html?|css|svg|png|jpe?g|gif|webp|ico|pdf|log|lock)$", re.IGNORECASE
)


def find_content_problems(path: str, content: bytes) -> Iterator[tuple[str, str]]:
    """Yield what the bytes of a file say about it: the rule that the whole file matches, and why."""
    if program := _program_kind(path, content):
        yield "executable-content", program
    elif archive := _archive_kind(content):
        yield "nested-archive", archive
    elif not is_media(content) and not _is_utf8(content):
        yield "binary-content", "not UTF-8 text"
    if content.startswith(b"#!") and _DOCUMENT.search(path):
        yield "misplaced-script", content[:80].partition(b"\n")[0].decode("utf-8", "replace")


def is_media(content: bytes) -> bool:
    """Return whether the content is an image, a font, a sound, a film or a PDF."""
    return content.startswith(_MEDIA) or any(content.startswith(magic, at) for magic, at in _MEDIA_AT.items())


def decode_text(content: bytes) -> str:
    """Decode text of any encoding, so that no encoding hides it; of binary content, the ASCII parts."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", "replace")
    if _is_utf8(content):
        return content.decode("utf-8-sig")
    return content.decode("ascii", "replace").replace("\0", "")


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in content


def _program_kind(path: str, content: bytes) -> str | None:
    for magic, kind in _PROGRAMS.items():
        if content.startswith(magic):
            return kind
    if content.startswith(b"MZ") and (b"PE\0\0" in content[:4096] or b"\0" in content[:64]):
        return "Windows program"
    is_pyc = content[2:4] == b"\r\n" and int.from_bytes(content[:2], "little") in _PYC_VERSIONS
    if is_pyc or path.endswith((".pyc", ".pyo")):
        return "Python bytecode"
    return None


def _archive_kind(content: bytes) -> str | None:
    for magic, kind in _ARCHIVES.items():
        if content.startswith(magic):
            return kind
    return "tar archive" if content[257:262] == b"ustar" else None
