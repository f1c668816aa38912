"""Content identifiers (multiformats/cid): versions 0 and 1, read in any usual alphabet, written in the canonical one.

Hashes that we can check are SHA-256 and the identity; a CID under another hash is read, and nothing is served for it.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from roost.storage.unixfs import multibase, varint
from roost.storage.unixfs.errors import InvalidCid, MalformedContent

RAW = 0x55
DAG_PB = 0x70
DAG_CBOR = 0x71
IDENTITY = 0x00
SHA2_256 = 0x12
DIGEST = 32
"""Bytes of a SHA-256 digest."""

_V0 = bytes((SHA2_256, DIGEST))
_LONGEST_TEXT = 512
_LONGEST_DIGEST = 128


@dataclass(frozen=True, slots=True)
class Cid:
    """`codec` says how to read the block (RAW, DAG_PB ...), `hash` what `digest` is (SHA2_256 ...)."""

    version: int
    codec: int
    hash: int
    digest: bytes

    @classmethod
    def of(cls, codec: int, block: bytes, version: int = 1) -> Self:
        """The SHA-256 CID of a block."""
        return cls(version, codec, SHA2_256, hashlib.sha256(block).digest())

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises InvalidCid, also for a second way to write a CID in its alphabet."""
        if len(text) > _LONGEST_TEXT:
            raise InvalidCid
        try:
            if len(text) == 46 and text.startswith("Qm"):
                return cls.exactly(multibase.decode58(text))
            found = cls.exactly(multibase.decode(text))
        except (ValueError, MalformedContent):
            raise InvalidCid from None
        if found.version == 0:  # a version 0 has no alphabet in front
            raise InvalidCid
        return found

    @classmethod
    def spelled(cls, text: str) -> Sequence[str]:
        """Every canonical way to write what `text` names. Raises InvalidCid."""
        return [str(one) for one in cls.parse(text).spellings()]

    @classmethod
    def read(cls, data: bytes | memoryview, at: int = 0) -> tuple[Self, int]:
        """The CID that starts at `at`, and where what follows it starts. Raises Malformed."""
        if bytes(data[at : at + 2]) == _V0:
            if len(data) < at + 34:
                raise MalformedContent("a CID is cut off")
            return cls(0, DAG_PB, SHA2_256, bytes(data[at + 2 : at + 34])), at + 34
        version, at = varint.decode(data, at)
        if version != 1:
            raise MalformedContent("a CID of an unknown version")
        codec, at = varint.decode(data, at)
        algorithm, at = varint.decode(data, at)
        length, at = varint.decode(data, at)
        if length > _LONGEST_DIGEST or len(data) < at + length or (algorithm == SHA2_256 and length != DIGEST):
            raise MalformedContent("a CID with a digest of a wrong length")
        return cls(1, codec, algorithm, bytes(data[at : at + length])), at + length

    @classmethod
    def exactly(cls, data: bytes) -> Self:
        """The CID that these bytes are. Raises Malformed."""
        found, end = cls.read(data)
        if end != len(data):
            raise MalformedContent("something follows the CID")
        return found

    @property
    def multihash(self) -> bytes:
        return varint.encode(self.hash) + varint.encode(len(self.digest)) + self.digest

    def __bytes__(self) -> bytes:
        return self.multihash if self.version == 0 else b"\x01" + varint.encode(self.codec) + self.multihash

    def __str__(self) -> str:
        return multibase.encode58(self.multihash) if self.version == 0 else "b" + multibase.encode32(bytes(self))

    def v1(self) -> Self:
        """The same content by its version 1."""
        return type(self)(1, self.codec, self.hash, self.digest)

    def spellings(self) -> "list[Cid]":
        """The CIDs of the same block under the same codec: its version 1, and the version 0 where there is one."""
        old = [Cid(0, DAG_PB, SHA2_256, self.digest)] if (self.codec, self.hash) == (DAG_PB, SHA2_256) else []
        return [self.v1(), *old]

    def names(self, block: bytes | memoryview) -> bool:
        """Whether the block is the one that this CID names. A hash that we do not know names nothing."""
        if self.hash == SHA2_256:
            return hashlib.sha256(block).digest() == self.digest
        return self.hash == IDENTITY and bytes(block) == self.digest
