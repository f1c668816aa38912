"""`Content-Type` of content that browsers show or save. Pure."""

import re

_VALID_MIME = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,80}/[a-z0-9][a-z0-9!#$&^_.+-]{0,80}", re.ASCII)
_SCRIPTABLE = frozenset({"text/html", "text/xml", "text/xsl", "application/xml", "application/xml-dtd"})
_UNKNOWN = "application/octet-stream"
SANDBOX = "sandbox"
"""Content security policy that denies scripts and forms, and isolates the document in its own origin."""


def can_run_scripts(mime: str) -> bool:
    """Return whether a browser may run scripts of content of this type."""
    return mime in _SCRIPTABLE or mime.endswith("+xml") or mime.startswith(("multipart/", "message/"))


def content_type(mime: str) -> str:
    """Return `Content-Type` for a detected type."""
    mime = mime.lower()
    if _VALID_MIME.fullmatch(mime) is None:
        return _UNKNOWN
    return f"{mime}; charset=utf-8" if mime.startswith("text/") else mime
