"""Verified credentials, for a moment: digest of the token to caller."""

import hashlib

from roost.core.ttl_cache import TTLCache
from roost.identity.caller import Caller


def token_digest(token: str) -> bytes:
    """What is stored and looked up in place of a token of 256 random bits: its SHA-256 (32 bytes)."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


class CallerCache(TTLCache[bytes, Caller]):
    """So a revocation by another process works within half a second; one in this process at once."""
