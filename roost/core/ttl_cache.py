"""Bounded cache with short-lived entries.

Changes by another process take effect within `lifetime` seconds; a change in this process drops the entry at once.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from roost.core import clock

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class TTLCache(Generic[K, V]):
    """Cache whose entries expire after `lifetime` seconds; beyond `size` entries the oldest are removed."""

    def __init__(self, lifetime: float = 0.5, size: int = 10_000) -> None:
        self._lifetime = lifetime
        self._size = size
        self._entries: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        if entry is None or entry[0] < clock.monotonic_seconds():
            return None
        return entry[1]

    def has(self, key: K) -> bool:
        """Return whether there is an entry, also if it has expired."""
        return key in self._entries

    def put(self, key: K, value: V) -> None:
        self._entries[key] = (clock.monotonic_seconds() + self._lifetime, value)
        self._entries.move_to_end(key)
        while len(self._entries) > self._size:
            self._entries.popitem(last=False)

    def drop(self, matches: Callable[[V], bool]) -> None:
        for key in [key for key, (_, value) in self._entries.items() if matches(value)]:
            del self._entries[key]
