"""Content identifiers (multiformats/cid), versions 0 and 1, parsed from common multibases, formatted canonically.

Verifiable hashes are SHA-256 and identity; CIDs with other hashes parse but match no block.
"""

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from roost.storage.content.unixfs import varint
from roost.storage.content.unixfs.errors import InvalidCid, MalformedContent

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


RAW = 0x55
DAG_PB = 0x70
DAG_CBOR = 0x71
IDENTITY = 0x00
SHA2_256 = 0x12
DIGEST = 32
"""Bytes of a SHA-256 digest."""

_V0 = bytes((SHA2_256, DIGEST))
_V1_BYTES, _LONG_VARINT = 36, 0x80
_MAX_TEXT = 512
_MAX_DIGEST = 128


@dataclass(frozen=True, slots=True)
class Cid:
    """Content identifier: `codec` of the block (RAW, DAG_PB ...), `hash` code (SHA2_256 ...) and digest."""

    version: int
    codec: int
    hash: int
    digest: bytes

    @classmethod
    def for_block(cls, codec: int, block: bytes | memoryview, version: int = 1) -> Self:
        """Return the SHA-256 CID of a block."""
        return cls(version, codec, SHA2_256, hashlib.sha256(block).digest())

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a CID. Raises InvalidCid, also for non-canonical encodings."""
        if len(text) > _MAX_TEXT:
            raise InvalidCid
        try:
            if len(text) == 46 and text.startswith("Qm"):
                return cls.from_bytes(decode_base58(text))
            found = cls.from_bytes(decode_multibase(text))
        except (ValueError, MalformedContent):
            raise InvalidCid from None
        if found.version == 0:  # version 0 has no multibase prefix
            raise InvalidCid
        return found

    @classmethod
    def parse_spellings(cls, text: str) -> Sequence[str]:
        """Return all canonical spellings of the CID `text`. Raises InvalidCid."""
        return [str(one) for one in cls.parse(text).spellings()]

    @classmethod
    def read(cls, data: bytes | memoryview, at: int = 0) -> tuple[Self, int]:
        """Return the CID at offset `at` and the offset after it. Raises MalformedContent."""
        if bytes(data[at : at + 2]) == _V0:  # version 0 is a bare multihash, which no version precedes
            if len(data) < at + 34:
                raise MalformedContent("a CID is cut off")
            return cls(0, DAG_PB, SHA2_256, bytes(data[at + 2 : at + 34])), at + 34
        version, at = varint.decode_varint(data, at)
        if version != 1:
            raise MalformedContent("a CID of an unknown version")
        codec, at = varint.decode_varint(data, at)
        algorithm, at = varint.decode_varint(data, at)
        length, at = varint.decode_varint(data, at)
        if length > _MAX_DIGEST or len(data) < at + length or (algorithm == SHA2_256 and length != DIGEST):
            raise MalformedContent("a CID with a digest of a wrong length")
        return cls(1, codec, algorithm, bytes(data[at : at + length])), at + length

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return the CID of exactly these bytes. Raises MalformedContent."""
        if len(data) == _V1_BYTES and data[0] == 1 and data[1] < _LONG_VARINT and data[2:4] == _V0:  # nearly all
            return cls(1, data[1], SHA2_256, data[4:])
        found, end = cls.read(data)
        if end != len(data):
            raise MalformedContent("something follows the CID")
        return found

    @property
    def multihash(self) -> bytes:
        if self.hash == SHA2_256:
            return _V0 + self.digest
        return varint.encode_varint(self.hash) + varint.encode_varint(len(self.digest)) + self.digest

    def __bytes__(self) -> bytes:
        if self.hash == SHA2_256 and self.version == 1 and self.codec < _LONG_VARINT:  # nearly all
            return bytes((1, self.codec, SHA2_256, DIGEST)) + self.digest
        return self.multihash if self.version == 0 else b"\x01" + varint.encode_varint(self.codec) + self.multihash

    def __str__(self) -> str:
        return encode_base58(self.multihash) if self.version == 0 else "b" + encode_base32(bytes(self))

    def v1(self) -> Self:
        """Return the same CID in version 1."""
        return type(self)(1, self.codec, self.hash, self.digest)

    def spellings(self) -> "list[Cid]":
        """Return the equivalent CIDs: version 1, and version 0 if it exists."""
        old = [Cid(0, DAG_PB, SHA2_256, self.digest)] if (self.codec, self.hash) == (DAG_PB, SHA2_256) else []
        return [self.v1(), *old]

    @property
    def is_verifiable(self) -> bool:
        return self.hash in {SHA2_256, IDENTITY}

    def matches(self, block: bytes | memoryview) -> bool:
        """Return whether the block matches this CID; unknown hashes match nothing."""
        if self.hash == SHA2_256:
            return hashlib.sha256(block).digest() == self.digest
        return self.hash == IDENTITY and bytes(block) == self.digest
