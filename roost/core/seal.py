"""Sealing of small values: AES-256-GCM envelopes under a key-encryption key (KEK).

An envelope is `version(1) | key id(8) | nonce(12) | wrapped data key(48) | nonce(12) | ciphertext+tag`. A fresh data
key encrypts each value; the KEK wraps the data key; the associated data binds both to their place, so an
envelope that is moved to another row does not open (NIST SP 800-38D).

A sealer can hold several keys: it opens with any of them and seals with the newest. Where it has a source of keys it
looks there before each sealing, and whenever it meets a key that it does not know, so that another process can
exchange the keys while it runs.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from roost.core import ids
from roost.core.problem import Problem, ProblemKind
from roost.core.sensitive import Sensitive

KEY_BYTES = 32
KEY_ID = slice(1, 9)
"""Where the id of the key stands in an envelope."""
OVERHEAD = 1 + 8 + 12 + 48 + 12 + 16
"""Bytes by which an envelope is longer than its value."""

_VERSION = b"\x01"
_HEAD = OVERHEAD - 16


class UnsealFailed(Problem):
    """The envelope is damaged, was moved, or was made under another key."""

    kind = ProblemKind.FAILED
    message = "Stored value could not be opened"


class SealingKeyMissing(Problem):
    """The source of keys has none, or one that has nothing to do with those before: nothing is sealed with it."""

    kind = ProblemKind.UNAVAILABLE
    message = "The key-encryption key is missing"


@dataclass(frozen=True)
class SealingKeys:
    """Key-encryption keys, the newest first, and the ids of earlier ones that were given up."""

    keys: Sequence[Sensitive[bytes]]
    given_up: frozenset[bytes] = frozenset()

    @property
    def ids(self) -> Sequence[bytes]:
        return [key_id(key) for key in self.keys]


Source = Callable[[], SealingKeys]
"""The keys as they are now. Raises KeyMissing."""


class Sealer:
    """Seals with the first of its keys, opens with all."""

    def __init__(self, *keys: Sensitive[bytes], source: Source | None = None) -> None:
        """Without `source` the keys are what they are. Raises KeyMissing, from the source."""
        self._source = source
        self._set = source() if source else SealingKeys(keys)
        self._ciphers = _ciphers(self._set)

    @property
    def key_id(self) -> bytes:
        """The id of the newest key, as far as it was looked at."""
        return self._set.ids[0]

    @property
    def key_ids(self) -> Sequence[bytes]:
        return self._set.ids

    def seal(self, value: bytes, place: str) -> bytes:
        """An envelope of `value` that opens only with the same `place` (table, row and version). Raises KeyMissing.

        Called inside the transaction that stores it, so that an exchange of keys knows of all that was sealed.
        """
        self._refresh()
        newest = self.key_id
        data_key = ids.random_bytes(KEY_BYTES)
        first, second = ids.random_bytes(12), ids.random_bytes(12)
        bound = place.encode()
        wrapped = self._ciphers[newest].encrypt(first, data_key, bound)
        return _VERSION + newest + first + wrapped + second + AESGCM(data_key).encrypt(second, value, bound)

    def open(self, envelope: bytes, place: str) -> Sensitive[bytes]:
        """Raises Unsealable."""
        if len(envelope) < _HEAD or envelope[:1] != _VERSION:
            raise UnsealFailed
        bound = place.encode()
        try:
            data_key = self._cipher(envelope[KEY_ID]).decrypt(envelope[9:21], envelope[21:69], bound)
            return Sensitive(AESGCM(data_key).decrypt(envelope[69:81], envelope[81:], bound))
        except InvalidTag:
            raise UnsealFailed from None

    def _cipher(self, wanted: bytes) -> AESGCM:
        if wanted not in self._ciphers:
            try:
                self._refresh()
            except SealingKeyMissing:
                raise UnsealFailed from None
        try:
            return self._ciphers[wanted]
        except KeyError:
            raise UnsealFailed from None

    def _refresh(self) -> None:
        """Keys are believed when they come from those that we have: a file of another deployment is not ours."""
        if self._source is None:
            return
        found = self._source()
        if self.key_id not in {*found.ids, *found.given_up}:
            raise SealingKeyMissing
        if found != self._set:
            self._ciphers = _ciphers(found)
            self._set = found


def _ciphers(keys: SealingKeys) -> dict[bytes, AESGCM]:
    if not keys.keys or any(len(key.reveal()) != KEY_BYTES for key in keys.keys):
        raise ValueError(f"a key-encryption key must have {KEY_BYTES} bytes")
    return {key_id(key): AESGCM(key.reveal()) for key in keys.keys}


def key_id(key: Sensitive[bytes]) -> bytes:
    """Eight bytes that tell keys apart and say nothing of the key."""
    return hashlib.sha256(b"roost kek id" + key.reveal()).digest()[:8]
