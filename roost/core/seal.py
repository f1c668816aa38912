"""Sealing of small values: AES-256-GCM envelopes under a key-encryption key (KEK).

An envelope is `version(1) | key id(8) | nonce(12) | wrapped data key(48) | nonce(12) | ciphertext+tag`. A fresh data
key encrypts each value; the KEK wraps the data key; the associated data binds both to their place, so an
envelope that is moved to another row does not open (NIST SP 800-38D).
"""

import hashlib

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from roost.core import ids
from roost.core.problem import Kind, Problem
from roost.core.sensitive import Sensitive

_VERSION = b"\x01"
_HEAD = 1 + 8 + 12 + 48 + 12


class Unsealable(Problem):
    """The envelope is damaged, was moved, or was made under another key."""

    kind = Kind.FAILED
    message = "Stored value could not be opened"


class Sealer:
    """Seals and opens with one KEK of 32 bytes."""

    def __init__(self, key: Sensitive[bytes]) -> None:
        if len(key.reveal()) != 32:
            raise ValueError("the key-encryption key has 32 bytes")
        self._kek = AESGCM(key.reveal())
        self.key_id = hashlib.sha256(b"roost kek id" + key.reveal()).digest()[:8]

    def seal(self, value: bytes, place: str) -> bytes:
        """An envelope of `value` that opens only with the same `place` (table, row and version)."""
        data_key = ids.random_bytes(32)
        first, second = ids.random_bytes(12), ids.random_bytes(12)
        bound = place.encode()
        wrapped = self._kek.encrypt(first, data_key, bound)
        return _VERSION + self.key_id + first + wrapped + second + AESGCM(data_key).encrypt(second, value, bound)

    def open(self, envelope: bytes, place: str) -> Sensitive[bytes]:
        """Raises Unsealable."""
        if len(envelope) < _HEAD or envelope[:1] != _VERSION or envelope[1:9] != self.key_id:
            raise Unsealable
        bound = place.encode()
        try:
            data_key = self._kek.decrypt(envelope[9:21], envelope[21:69], bound)
            return Sensitive(AESGCM(data_key).decrypt(envelope[69:81], envelope[81:], bound))
        except InvalidTag:
            raise Unsealable from None
