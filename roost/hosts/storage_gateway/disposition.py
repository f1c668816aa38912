"""What a browser is told to do with content: its type, its name, whether it may run. Pure but for a memory of types."""

import re
from urllib.parse import quote

_SANE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,80}/[a-z0-9][a-z0-9!#$&^_.+-]{0,80}", re.ASCII)
_RUNS = frozenset({"text/html", "text/xml", "text/xsl", "application/xml", "application/xml-dtd"})
_UNKNOWN = "application/octet-stream"
_LONGEST_NAME = 255
SANDBOX = "sandbox"
"""A policy under which a document has no scripts, no forms and an origin of its own."""


def runs(mime: str) -> bool:
    """Whether a browser may run scripts of content of that type."""
    kind = mime.partition("/")[0]
    return mime in _RUNS or mime.endswith("+xml") or kind in {"multipart", "message"}


def content_type(mime: str) -> str:
    """The header for a type that was found by looking at bytes and a name."""
    mime = mime.lower()
    if _SANE.fullmatch(mime) is None:
        return _UNKNOWN
    return f"{mime}; charset=utf-8" if mime.startswith("text/") else mime


def disposition(kind: str, name: str) -> str:
    """`inline` or `attachment` with a name that no reader misunderstands (RFC 6266, 4.3 and appendix D)."""
    name = "".join(sign for sign in name[:_LONGEST_NAME] if sign.isprintable() and sign not in "/\\")
    if not name:
        return kind
    plain = "".join(sign if sign.isascii() and sign not in '"%' else "_" for sign in name)
    extended = "" if plain == name else f"; filename*=UTF-8''{quote(name.encode('utf-8', 'replace'), safe='')}"
    return f'{kind}; filename="{plain}"{extended}'
