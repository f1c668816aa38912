"""The alphabets in which CIDs are written (multiformats/multibase)."""

import base64
from collections.abc import Callable, Mapping

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"


def encode32(data: bytes) -> str:
    return base64.b32encode(data).decode().rstrip("=").lower()


def encode58(data: bytes) -> str:
    return _positional(data, _BASE58)


def decode58(text: str) -> bytes:
    """Raises ValueError."""
    return _unpositional(text, _BASE58)


def decode(text: str) -> bytes:
    """The bytes of a text whose first sign names its alphabet.

    Raises ValueError for an unknown alphabet, and for a second way to write the same bytes.
    """
    encoder, decoder = _BASES.get(text[:1], (None, None))
    if encoder is None or decoder is None:
        raise ValueError("unknown multibase")
    data = decoder(text[1:])
    if encoder(data) != text[1:]:
        raise ValueError("not in its canonical form")
    return data


def _padded(text: str, block: int) -> str:
    return text + "=" * (-len(text) % block)


def _positional(data: bytes, alphabet: str) -> str:
    """Base58 and base36: a number in that base; each leading zero byte is one leading zero digit."""
    zeros = len(data) - len(data.lstrip(b"\0"))
    number, digits = int.from_bytes(data, "big"), ""
    while number:
        number, digit = divmod(number, len(alphabet))
        digits = alphabet[digit] + digits
    return alphabet[0] * zeros + digits


def _unpositional(text: str, alphabet: str) -> bytes:
    number = 0
    for sign in text:
        number = number * len(alphabet) + alphabet.index(sign)
    zeros = len(text) - len(text.lstrip(alphabet[0]))
    return b"\0" * zeros + number.to_bytes((number.bit_length() + 7) // 8, "big")


_BASES: Mapping[str, tuple[Callable[[bytes], str], Callable[[str], bytes]]] = {
    "b": (encode32, lambda text: base64.b32decode(_padded(text.upper(), 8))),
    "B": (lambda data: encode32(data).upper(), lambda text: base64.b32decode(_padded(text, 8))),
    "f": (bytes.hex, bytes.fromhex),
    "F": (lambda data: data.hex().upper(), bytes.fromhex),
    "z": (encode58, decode58),
    "k": (lambda data: _positional(data, _BASE36), lambda text: _unpositional(text, _BASE36)),
    "u": (
        lambda data: base64.urlsafe_b64encode(data).decode().rstrip("="),
        lambda text: base64.urlsafe_b64decode(_padded(text, 4)),
    ),
}
