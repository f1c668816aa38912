"""Column types with the same meaning on SQLite and PostgreSQL."""

import json
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import BigInteger, Select, Text
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

from roost.core.actor import Actor, ActorKind

IdQuery = Select[tuple[str]]
"""A query of ids, which the SQL of another slice may contain."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class UtcTime(TypeDecorator[datetime]):
    """A time, stored as microseconds since 1970 UTC, which sorts and compares equally on all databases.

    Rejects a time without a zone, whose meaning depends on the machine.
    """

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:  # noqa: ARG002 - SQLAlchemy's signature
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a stored time needs a time zone, got {value!r}")
        return (value - _EPOCH) // _MICROSECOND

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - SQLAlchemy's signature
        return None if value is None else _EPOCH + timedelta(microseconds=value)


class JsonText(TypeDecorator[Any]):
    """A JSON value stored as text; None is NULL.

    ASCII with escapes, because JSON strings can hold what UTF-8 columns cannot (NUL, lone surrogates).
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:  # noqa: ARG002 - SQLAlchemy's signature
        return None if value is None else json.dumps(value, separators=(",", ":"), allow_nan=False)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:  # noqa: ARG002 - SQLAlchemy's signature
        return None if value is None else json.loads(value)


class ActorText(TypeDecorator[Actor]):
    """An actor as JSON text; None is NULL, where it is unknown."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Actor | None, dialect: Dialect) -> str | None:  # noqa: ARG002 - SQLAlchemy's signature
        return None if value is None else json.dumps(asdict(value), separators=(",", ":"))

    def process_result_value(self, value: str | None, dialect: Dialect) -> Actor | None:  # noqa: ARG002 - SQLAlchemy's signature
        if value is None:
            return None
        fields = json.loads(value)
        return Actor(**fields | {"kind": ActorKind(fields["kind"])})
