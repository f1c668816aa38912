"""Names of files in UnixFS, whose names are UTF-8: one reversible spelling for every name that Linux allows.

A byte 0xNN that is not part of UTF-8, in Python's names the lone surrogate U+DCNN, becomes the private-use character
U+EFNN, as in MirOS's OPTU encodings. A character from U+EF80 to U+EFFF, which icon fonts use, is spelled by its three
bytes in the same way, so that it is told apart from a byte.
"""

from roost.storage.content.unixfs.errors import InvalidEntryName

_ESCAPED, _PRIVATE = 0xDC00, 0xEF00
_BYTES = range(0x80, 0x100)
_TO_ESCAPED = {_PRIVATE + byte: _ESCAPED + byte for byte in _BYTES}
_TO_PRIVATE = {
    **{_ESCAPED + byte: chr(_PRIVATE + byte) for byte in _BYTES},
    **{sign: "".join(chr(_PRIVATE + byte) for byte in chr(sign).encode()) for sign in _TO_ESCAPED},
}


def encode_entry_name(name: str) -> str:
    """Return the UnixFS name of a file; bytes that are not UTF-8 are lone surrogates. Raises InvalidEntryName."""
    if name.isascii():
        return name
    if _read_bytes(name) != name:  # crafted surrogates, which make up UTF-8 or stand for no byte
        raise InvalidEntryName
    return name.translate(_TO_PRIVATE)


def decode_entry_name(name: str) -> str:
    """Return the name of a file from its UnixFS name; the inverse of `encode_entry_name`. Raises InvalidEntryName."""
    if name.isascii():
        return name
    decoded = _read_bytes(name.translate(_TO_ESCAPED))
    if decoded is None or decoded.translate(_TO_PRIVATE) != name:  # a second spelling of the same name
        raise InvalidEntryName
    return decoded


def _read_bytes(name: str) -> str | None:
    """Return the name that Python gives to a file with these characters and bytes, None if there is no such file."""
    try:
        return name.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return None
