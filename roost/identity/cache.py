"""A small bounded cache of verified credentials: digest of the token to caller, for a moment.

What it holds was true at most `lifetime` seconds ago, so a revocation by another process works within that time;
one in this process drops the entry at once.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable

from roost.core import clock
from roost.identity.caller import Caller


def digest(token: str) -> bytes:
    """What is stored and looked up in place of a token of 256 random bits: its SHA-256 (32 bytes)."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


class CallerCache:
    def __init__(self, lifetime: float = 0.5, size: int = 10_000) -> None:
        self._lifetime = lifetime
        self._size = size
        self._entries: OrderedDict[bytes, tuple[float, Caller]] = OrderedDict()

    def get(self, key: bytes) -> Caller | None:
        entry = self._entries.get(key)
        if entry is None or entry[0] < clock.monotonic():
            return None
        return entry[1]

    def put(self, key: bytes, caller: Caller) -> None:
        self._entries[key] = (clock.monotonic() + self._lifetime, caller)
        self._entries.move_to_end(key)
        while len(self._entries) > self._size:
            self._entries.popitem(last=False)

    def drop(self, matches: Callable[[Caller], bool]) -> None:
        for key in [key for key, (_, caller) in self._entries.items() if matches(caller)]:
            del self._entries[key]
