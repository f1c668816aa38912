"""Text encodings of CIDs (multiformats/multibase)."""

import base64
from collections.abc import Callable, Mapping
from functools import lru_cache

_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_BASE36 = "0123456789abcdefghijklmnopqrstuvwxyz"


@lru_cache(maxsize=1024)  # a CID is encoded to be checked and to be counted, and some CIDs are asked for often
def encode_base32(data: bytes) -> str:
    return base64.b32encode(data).decode().rstrip("=").lower()


def encode_base58(data: bytes) -> str:
    return _encode_digits(data, _BASE58)


def decode_base58(text: str) -> bytes:
    """Decode base58btc. Raises ValueError."""
    return _decode_digits(text, _BASE58)


def decode_multibase(text: str) -> bytes:
    """Decode a text by its multibase prefix. Raises ValueError for unknown and non-canonical encodings."""
    encoder, decoder = _BASES.get(text[:1], (None, None))
    if encoder is None or decoder is None:
        raise ValueError("unknown multibase")
    data = decoder(text[1:])
    if encoder(data) != text[1:]:
        raise ValueError("not in its canonical form")
    return data


def _add_padding(text: str, block: int) -> str:
    return text + "=" * (-len(text) % block)


def _encode_digits(data: bytes, alphabet: str) -> str:
    """Encode in base58 or base36; each leading zero byte becomes one zero digit."""
    zeros = len(data) - len(data.lstrip(b"\0"))
    number, digits = int.from_bytes(data, "big"), ""
    while number:
        number, digit = divmod(number, len(alphabet))
        digits = alphabet[digit] + digits
    return alphabet[0] * zeros + digits


def _decode_digits(text: str, alphabet: str) -> bytes:
    number = 0
    for sign in text:
        number = number * len(alphabet) + alphabet.index(sign)
    zeros = len(text) - len(text.lstrip(alphabet[0]))
    return b"\0" * zeros + number.to_bytes((number.bit_length() + 7) // 8, "big")


_BASES: Mapping[str, tuple[Callable[[bytes], str], Callable[[str], bytes]]] = {
    "b": (encode_base32, lambda text: base64.b32decode(_add_padding(text.upper(), 8))),
    "B": (lambda data: encode_base32(data).upper(), lambda text: base64.b32decode(_add_padding(text, 8))),
    "f": (bytes.hex, bytes.fromhex),
    "F": (lambda data: data.hex().upper(), bytes.fromhex),
    "z": (encode_base58, decode_base58),
    "k": (lambda data: _encode_digits(data, _BASE36), lambda text: _decode_digits(text, _BASE36)),
    "u": (
        lambda data: base64.urlsafe_b64encode(data).decode().rstrip("="),
        lambda text: base64.urlsafe_b64decode(_add_padding(text, 4)),
    ),
}
