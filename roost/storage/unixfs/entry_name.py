"""Names of files in UnixFS, whose names are UTF-8: a byte that is not part of UTF-8 becomes a private-use character.

Byte 0xNN, in Python's names the lone surrogate U+DCNN, becomes U+EFNN, as in MirOS's OPTU encodings. A file whose name
has such a character already cannot be told apart, so its name is refused.
"""

from roost.storage.unixfs.errors import InvalidEntryName

_ESCAPED, _PRIVATE = 0xDC00, 0xEF00
_TO_PRIVATE = {_ESCAPED + byte: _PRIVATE + byte for byte in range(0x80, 0x100)}
_TO_ESCAPED = {private: escaped for escaped, private in _TO_PRIVATE.items()}


def encode_entry_name(name: str) -> str:
    """Return the UnixFS name of a file; bytes that are not UTF-8 are lone surrogates. Raises InvalidEntryName."""
    if name.isascii():
        return name
    if not _is_file_name(name) or any(ord(sign) in _TO_ESCAPED for sign in name):
        raise InvalidEntryName
    return name.translate(_TO_PRIVATE)


def decode_entry_name(name: str) -> str:
    """Return the name of a file from its UnixFS name; the inverse of `encode_entry_name`. Raises InvalidEntryName."""
    if name.isascii():
        return name
    decoded = name.translate(_TO_ESCAPED)
    if not _is_file_name(decoded):
        raise InvalidEntryName
    return decoded


def _is_file_name(name: str) -> bool:
    """Return whether Python gives a file this name; crafted surrogates can make up UTF-8, which has another name."""
    try:
        return name.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape") == name
    except UnicodeEncodeError:
        return False
