"""`Content-Disposition`: the name under which a browser saves a response. Pure."""

from urllib.parse import quote

_NAME_LIMIT = 255


def content_disposition(kind: str, name: str) -> str:
    """Return `inline` or `attachment` with a file name that is safe for all clients (RFC 6266, 4.3, appendix D)."""
    name = "".join(char for char in name[:_NAME_LIMIT] if char.isprintable() and char not in "/\\")
    if not name:
        return kind
    plain = "".join(char if char.isascii() and char not in '"%' else "_" for char in name)
    extended = "" if plain == name else f"; filename*=UTF-8''{quote(name.encode('utf-8', 'replace'), safe='')}"
    return f'{kind}; filename="{plain}"{extended}'
