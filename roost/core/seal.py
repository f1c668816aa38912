"""Sealing of small values in AES-256-GCM envelopes under a key-encryption key (KEK).

An envelope is `version(1) | key id(8) | nonce(12) | wrapped data key(48) | nonce(12) | ciphertext+tag`. A fresh data
key encrypts each value; the KEK wraps the data key; the associated data binds both to their row, so that
an envelope that is moved to another row does not open (NIST SP 800-38D).

A sealer can have several keys: it opens with any of them and seals with the newest. With a source of keys, it reloads
them before each sealing and for unknown keys, so that another process can rotate the keys at run time.
"""

import hashlib
import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from roost.core import ids
from roost.core.problem import Problem, ProblemKind
from roost.core.sensitive import Sensitive

KEY_BYTES = 32
KEY_ID = slice(1, 9)
"""Position of the key's id in an envelope."""
OVERHEAD = 1 + 8 + 12 + 48 + 12 + 16
"""Difference between the lengths of an envelope and its value."""

_VERSION = b"\x01"
_HEAD = OVERHEAD - 16
_DIGEST_BYTES = 16


class UnsealFailed(Problem):
    """The envelope is damaged, was moved to another row, or is sealed with an unknown key."""

    kind = ProblemKind.FAILED
    message = "Stored value could not be opened"


class SealingKeyMissing(Problem):
    """The source has no keys, or only keys that are unrelated to the previous ones."""

    kind = ProblemKind.UNAVAILABLE
    message = "The key-encryption key is missing"


@dataclass(frozen=True)
class SealingKeys:
    """Key-encryption keys, newest first, and the ids of retired ones."""

    keys: Sequence[Sensitive[bytes]]
    retired: frozenset[bytes] = frozenset()

    @property
    def ids(self) -> Sequence[bytes]:
        return [key_id(key) for key in self.keys]


KeySource = Callable[[], SealingKeys]
"""Returns the current keys. Raises SealingKeyMissing."""


class Sealer:
    """Seals with the first of its keys, opens with all."""

    def __init__(self, *keys: Sensitive[bytes], source: KeySource | None = None) -> None:
        """Use `keys`, or those of `source`. Raises SealingKeyMissing."""
        self._source = source
        self._keys = source() if source else SealingKeys(keys)
        self._ciphers = _ciphers(self._keys)

    @property
    def key_id(self) -> bytes:
        """Id of the newest loaded key."""
        return self._keys.ids[0]

    @property
    def key_ids(self) -> Sequence[bytes]:
        return self._keys.ids

    def seal(self, value: bytes, associated_data: str) -> bytes:
        """Seal `value` in an envelope that opens only with the same `associated_data`. Raises SealingKeyMissing.

        Call it in the transaction that stores the envelope, so that a key rotation includes it.
        """
        self._refresh()
        newest = self.key_id
        data_key = ids.random_bytes(KEY_BYTES)
        first, second = ids.random_bytes(12), ids.random_bytes(12)
        bound = associated_data.encode()
        wrapped = self._ciphers[newest].encrypt(first, data_key, bound)
        return _VERSION + newest + first + wrapped + second + AESGCM(data_key).encrypt(second, value, bound)

    def open(self, envelope: bytes, associated_data: str) -> Sensitive[bytes]:
        """Open an envelope. Raises UnsealFailed."""
        if len(envelope) < _HEAD or envelope[:1] != _VERSION:
            raise UnsealFailed
        bound = associated_data.encode()
        try:
            data_key = self._cipher(envelope[KEY_ID]).decrypt(envelope[9:21], envelope[21:69], bound)
            return Sensitive(AESGCM(data_key).decrypt(envelope[69:81], envelope[81:], bound))
        except InvalidTag:
            raise UnsealFailed from None

    def digest(self, value: Sensitive[str]) -> str:
        """Return a digest that tells equal values without telling them; a rotation of the keys changes it."""
        key = hmac.digest(self._keys.keys[0].reveal(), b"roost digest of a value", "sha256")
        return hmac.digest(key, value.reveal().encode(), "sha256")[:_DIGEST_BYTES].hex()

    def _cipher(self, key_id: bytes) -> AESGCM:
        if key_id not in self._ciphers:
            try:
                self._refresh()
            except SealingKeyMissing:
                raise UnsealFailed from None
        try:
            return self._ciphers[key_id]
        except KeyError:
            raise UnsealFailed from None

    def _refresh(self) -> None:
        """Reload the keys; reject keys of another deployment, which do not include the current one."""
        if self._source is None:
            return
        loaded = self._source()
        if self.key_id not in {*loaded.ids, *loaded.retired}:
            raise SealingKeyMissing
        if loaded != self._keys:
            self._ciphers = _ciphers(loaded)
            self._keys = loaded


def _ciphers(keys: SealingKeys) -> dict[bytes, AESGCM]:
    if not keys.keys or any(len(key.reveal()) != KEY_BYTES for key in keys.keys):
        raise ValueError(f"a key-encryption key must have {KEY_BYTES} bytes")
    return {key_id(key): AESGCM(key.reveal()) for key in keys.keys}


def key_id(key: Sensitive[bytes]) -> bytes:
    """Return eight bytes that identify a key without revealing it."""
    return hashlib.sha256(b"roost kek id" + key.reveal()).digest()[:8]
