"""Checks that no pattern of a line expresses: of bytes of files, of Unicode tricks and of encoded blocks. Pure."""

import re
import unicodedata
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


_FLAG = re.compile("\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f")
"""Flags of regions, such as Scotland's: the one use of tag characters."""
_BIDIRECTIONAL = re.compile("[\u202a-\u202e\u2066-\u2069]")
_HIDDEN = re.compile("[\U000e0000-\U000e007f]|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{3}")
_ZERO_WIDTH = re.compile(
    "[\u200b\u2060-\u2064\ufeff\u180e\u3164\uffa0\u115f\u1160]|(?<=[A-Za-z0-9])[\u200c\u200d\u00ad](?=[A-Za-z0-9])"
)
_INVISIBLE = re.compile("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef]")

_LOOKALIKES = str.maketrans(
    "асеорхуіјѕԁһԛԝАВЕКМНОРСТУХЅІЈοΟΑΒΕΖΗΙΚΜΝΡΤΥΧİ",
    "aceopxyijsdhqwABEKMHOPCTYXSIJoOABEZHIKMNPTYXI",
)
"""Cyrillic and Greek letters, and the one letter that is longer in lower case."""
_WORD = re.compile(r"\w{2,40}")
_COMMANDS = re.compile(
    r"bash|base64|cat|chmod|chown|cmd|curl|crontab|dd|env|eval|exec|export|git|https?|ignore|import|instructions|install"
    r"|node|np[mx]|openssl|osascript|password|perl|pip|powershell|prompt|python3?|rm|scp|secret|sh|ssh|sudo|system|tar"
    r"|token|user|wget|zsh"
)
_CHUNK = re.compile(r"(?s:.{1,2000}\b|.{1,2000})")

_ENCODED = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{300,}+")
_DATA_URL = re.compile(
    r"data:(?:image|font|audio|video)/[\w.+-]{1,40};base64,$|sourceMappingURL=\S{0,80}$", re.IGNORECASE
)
_DATA_URL_LENGTH = 100
_MIXED = (re.compile("[a-z]"), re.compile("[A-Z]"), re.compile("[0-9]"))
_NOT_HEXADECIMAL = re.compile("[G-Zg-z+/_-]")


def find_unicode_problems(text: str, limit: int) -> Iterator[tuple[str, int]]:
    """Yield the rule and the position of each kind of deception by Unicode, in at most `limit` lines of each."""
    if text.isascii():
        return
    for rule, pattern in (
        ("bidirectional-text", _BIDIRECTIONAL),
        ("hidden-characters", _HIDDEN),
        ("zero-width", _ZERO_WIDTH),
    ):
        for found in _first_of_lines(pattern, text, limit):
            yield rule, found.start()


def _first_of_lines(pattern: re.Pattern[str], text: str, limit: int) -> Iterator[re.Match[str]]:
    """Yield the first match of each line, of at most `limit` lines."""
    start = 0
    while limit and start >= 0 and (found := pattern.search(text, start)):
        yield found
        limit, start = limit - 1, text.find("\n", found.end())


def find_encoded_blocks(text: str, limit: int) -> Iterator[int]:
    """Yield the positions of at most `limit` long runs of encoded bytes, other than media in data URLs."""
    for block in _ENCODED.finditer(text):
        digits, at = block[0], block.start()
        is_mixed = all(kind.search(digits) for kind in _MIXED) or not _NOT_HEXADECIMAL.search(digits)
        if is_mixed and len(set(digits)) > 8 and not _DATA_URL.search(text, max(at - _DATA_URL_LENGTH, 0), at):
            yield at
            if (limit := limit - 1) == 0:
                return


def remove_flags(text: str) -> str:
    """Return the text without the tag characters of flags, which are their one use that hides nothing."""
    return text if text.isascii() else _FLAG.sub("\U0001f3f4", text)


def cut_chunks(text: str) -> Iterator[tuple[int, str]]:
    """Cut a text at ends of words; normalization takes quadratic time for hostile text."""
    return ((chunk.start(), chunk[0]) for chunk in _CHUNK.finditer(text))


def find_homoglyph(chunk: str, known: set[str]) -> int | None:
    """Return the position of the first word that looks like the name of a command, but has other letters.

    Words in `known` are skipped; those of the chunk are added.
    """
    words = [word for word in _WORD.findall(chunk) if word not in known and not word.isascii()]
    known.update(words)
    seen = fold_lookalikes("\n".join(words)).lower().split("\n")
    return next((chunk.find(words[at]) for at, word in enumerate(seen) if _COMMANDS.fullmatch(word)), None)


def fold_lookalikes(chunk: str) -> str:
    """Return a short text as a reader sees it: no invisible characters, look-alike letters as Latin ones."""
    if chunk.isascii():
        return chunk
    chunk = _INVISIBLE.sub("", chunk)
    if not unicodedata.is_normalized("NFKC", chunk):
        chunk = unicodedata.normalize("NFKC", chunk)
    return chunk.translate(_LOOKALIKES)
