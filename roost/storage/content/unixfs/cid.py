"""Content identifiers (multiformats/cid), versions 0 and 1, parsed from common multibases, formatted canonically.

Verifiable hashes are SHA-256 and identity; CIDs with other hashes parse but match no block.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from roost.storage.content.unixfs import multibase, varint
from roost.storage.content.unixfs.errors import InvalidCid, MalformedContent

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
                return cls.from_bytes(multibase.decode_base58(text))
            found = cls.from_bytes(multibase.decode_multibase(text))
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
        if bytes(data[at : at + 2]) == _V0:
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
        return self.multihash if self.version == 0 else b"\x01" + varint.encode_varint(self.codec) + self.multihash

    def __str__(self) -> str:
        return (
            multibase.encode_base58(self.multihash) if self.version == 0 else "b" + multibase.encode_base32(bytes(self))
        )

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
