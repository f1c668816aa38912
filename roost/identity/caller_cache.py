"""Short-lived cache of verified credentials: digest of the token to caller."""

import hashlib

from roost.core.ttl_cache import TTLCache
from roost.identity.caller import Caller


def token_digest(token: str) -> bytes:
    """Return the SHA-256 (32 bytes) that is stored and looked up instead of a token of 256 random bits."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


class CallerCache(TTLCache[bytes, Caller]):
    """Cache of callers: a revocation by another process takes effect within half a second, in this one at once."""
