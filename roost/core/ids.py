"""New identifiers and random tokens. The only caller of `secrets` and `uuid4`."""

import secrets
import uuid

_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"  # 32 signs without l, o, 0 and 1


def new_id() -> str:
    """A random UUID (122 bits)."""
    return str(uuid.uuid4())


def host_label(length: int = 16) -> str:
    """A random name that is a valid DNS label and starts with a letter; 16 signs carry 79 bits."""
    first = secrets.choice(_ALPHABET[:24])
    return first + "".join(secrets.choice(_ALPHABET) for _ in range(length - 1))


def new_token(prefix: str) -> str:
    """A bearer token of 256 random bits with a prefix that secret scanners can search for."""
    return f"{prefix}_{secrets.token_hex(32)}"


def public_key(length: int = 20) -> str:
    """A random name of a credential in hexadecimal digits; 20 carry 80 bits."""
    return secrets.token_hex(length // 2)


def new_hex_secret() -> str:
    """256 random bits as 64 hexadecimal digits."""
    return secrets.token_hex(32)


def random_bytes(count: int) -> bytes:
    return secrets.token_bytes(count)
