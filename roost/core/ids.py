"""Random identifiers and tokens, from the only caller of `secrets` (decision 0006)."""

import os
import secrets
from collections import deque

_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"  # 32 characters without l, o, 0 and 1
_HOST_LABEL_LENGTH = 16
_ID_BLOCK = 128
"""Ids for which the system is asked at once: each request has one, and the question takes a tenth of its time."""

_id_digits: deque[str] = deque()
os.register_at_fork(after_in_child=_id_digits.clear)  # else both processes would make the same ids


def new_id() -> str:
    """Return a random UUID (RFC 9562, version 4; 122 bits), made in a fraction of the time of `uuid4`."""
    try:
        digits = _id_digits.popleft()  # threads may share it
    except IndexError:
        block = secrets.token_hex(16 * _ID_BLOCK)
        _id_digits.extend(block[at : at + 32] for at in range(32, len(block), 32))
        digits = block[:32]
    return (
        f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{'89ab'[int(digits[16], 16) & 3]}{digits[17:20]}-{digits[20:]}"
    )


def new_host_label(length: int = _HOST_LABEL_LENGTH) -> str:
    """Return a random DNS label that starts with a letter; 16 characters have 79 bits."""
    first = secrets.choice(_ALPHABET[:24])
    return first + "".join(secrets.choice(_ALPHABET) for _ in range(length - 1))


def is_host_label(text: str) -> bool:
    """Return whether text could be a label of 16 characters from `new_host_label`."""
    return len(text) == _HOST_LABEL_LENGTH and text[0].isalpha() and set(text) <= set(_ALPHABET)


def new_token(prefix: str) -> str:
    """Return a bearer token of 256 random bits with a prefix for secret scanners."""
    return f"{prefix}_{secrets.token_hex(32)}"


def new_key_handle(length: int = 20) -> str:
    """Return a random public name of a credential in hexadecimal digits; 20 have 80 bits."""
    return secrets.token_hex(length // 2)


def new_hex_secret() -> str:
    """Return 256 random bits as 64 hexadecimal digits."""
    return secrets.token_hex(32)


def random_bytes(count: int) -> bytes:
    return secrets.token_bytes(count)
