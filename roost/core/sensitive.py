"""Secret values: every way of printing one gives `[redacted]`, and `reveal()` is easy to search for."""

import hmac
from typing import Generic, TypeVar, cast

T = TypeVar("T", str, bytes)


class Sensitive(Generic[T]):
    """A secret value, whose text never appears in output."""

    __slots__ = ("_value",)

    def __init__(self, value: T) -> None:
        self._value = value

    def reveal(self) -> T:
        return self._value

    def __repr__(self) -> str:
        return "[redacted]"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format("[redacted]", spec)

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a sensitive value cannot be pickled")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sensitive):
            return NotImplemented
        return hmac.compare_digest(_as_bytes(self._value), _as_bytes(cast("Sensitive[str]", other).reveal()))

    def __hash__(self) -> int:
        return hash((Sensitive, self._value))


def _as_bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value
