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

_CYRILLIC = str.maketrans("асеорхуіјѕԁһԛԝАВЕКМНОРСТУХЅІЈ", "aceopxyijsdhqwABEKMHOPCTYXSIJ")  # noqa: RUF001 - that is the point
_GREEK = str.maketrans("οΟΑΒΕΖΗΙΚΜΝΡΤΥΧ", "oOABEZHIKMNPTYX")  # noqa: RUF001 - that is the point
_WORD = re.compile(r"\w{2,40}")
_COMMANDS = re.compile(
    r"bash|base64|cat|chmod|chown|cmd|curl|crontab|dd|env|eval|exec|export|git|https?|ignore|import|instructions|install"
    r"|node|np[mx]|openssl|osascript|password|perl|pip|powershell|prompt|python3?|rm|scp|secret|sh|ssh|sudo|system|tar"
    r"|token|user|wget|zsh"
)

_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{300,}|[0-9A-Fa-f]{300,}")
_DATA_URL = re.compile(
    r"data:(?:image|font|audio|video)/[\w.+-]{1,40};base64,$|sourceMappingURL=\S{0,80}$", re.IGNORECASE
)
_MIXED = (re.compile("[a-z]"), re.compile("[A-Z]"), re.compile("[0-9]"))


def find_unicode_problems(line: str) -> Iterator[tuple[str, int]]:
    """Yield the rule and the position of each kind of deception by Unicode in a line."""
    if line.isascii():
        return
    line = _FLAG.sub(lambda flag: " " * len(flag[0]), line)
    for rule, pattern in (
        ("bidirectional-text", _BIDIRECTIONAL),
        ("hidden-characters", _HIDDEN),
        ("zero-width", _ZERO_WIDTH),
    ):
        if found := pattern.search(line):
            yield rule, found.start()
    for word in _WORD.finditer(line):
        if not word[0].isascii() and _COMMANDS.fullmatch(fold_lookalikes(word[0]).lower()):
            yield "homoglyphs", word.start()
            break


def find_encoded_blocks(line: str) -> Iterator[int]:
    """Yield the positions of long runs of encoded bytes, other than media in data URLs."""
    for block in _ENCODED.finditer(line):
        is_mixed = all(kind.search(block[0]) for kind in _MIXED) or not re.search("[G-Zg-z+/_-]", block[0])
        if is_mixed and len(set(block[0])) > 8 and not _DATA_URL.search(line, 0, block.start()):
            yield block.start()


def fold_lookalikes(text: str) -> str:
    """Return the text as a reader sees it: no invisible characters, look-alike letters as Latin ones."""
    if text.isascii():
        return text
    text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
    return text.translate(_CYRILLIC).translate(_GREEK)
