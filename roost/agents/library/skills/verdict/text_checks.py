"""Checks of lines that no pattern of one line expresses: Unicode tricks and encoded blocks. Pure."""

import re
import unicodedata
from collections.abc import Iterator

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
