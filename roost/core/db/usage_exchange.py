"""Rate limits that all servers of a database share, within what they use in a second (decision 0064)."""

import json
from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from datetime import timedelta

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql

from roost.core import clock, ids
from roost.core.db.database import Database, metadata
from roost.core.db.types import UtcTime
from roost.core.periodic import PeriodicTask
from roost.core.rate_limit import RateLimiter

_REPEATS = 3  # a server that reads late finds what another one wrote so many seconds ago
_MOST_KEYS = 1000  # of a limiter, in a second
_KEPT = timedelta(hours=1)
_BYTES = "#"  # begins the text of a key of bytes

Usage = Mapping[str, Mapping[str, int]]
"""Units by the name of a limiter's policy and by key."""

rate_usage = sa.Table(
    "rate_usage",
    metadata,
    sa.Column("process_id", sa.String(36), primary_key=True),
    sa.Column("usage", sa.Text, nullable=False),
    sa.Column("written_at", UtcTime, nullable=False),
)


class UsageExchange:
    """Charges the limiters of a server for what the other servers of its database admit; does nothing on SQLite.

    Each second it writes what this server admitted of the keys that matter, and reads what others wrote. Limiters
    themselves do no I/O: between two exchanges each server grants what it knows to be left.
    """

    def __init__(self, db: Database, limiters: Sequence[RateLimiter], interval: float = 1.0) -> None:
        """Each of the limiters has a policy with a name of its own, the same on all servers; interval: in seconds."""
        self._db = db
        self._limiters = {limiter.policy.name: limiter for limiter in limiters}
        self._recent = deque[tuple[str, Usage]](maxlen=_REPEATS)
        self._seen: frozenset[str] | None = None  # None: what others wrote before this server began is not charged
        self._task = PeriodicTask("rate limits of all servers", self.exchange, interval)
        self._interval = interval

    async def start(self) -> None:
        if self._db.is_sqlite or not self._limiters:
            return
        await self._db.write(self._delete_old)
        for limiter in self._limiters.values():
            limiter.share_usage()
        await self.exchange()
        self._task.start(self._interval)

    async def stop(self) -> None:
        """Idempotent."""
        await self._task.stop()

    async def exchange(self) -> None:
        """Write and read once."""
        now = clock.monotonic_seconds()
        usage = {name: used for name, limiter in self._limiters.items() if (used := _collect(limiter, now))}
        if usage or any(earlier for _, earlier in self._recent):
            self._recent.append((ids.new_id(), usage))
            await self._db.write(self._write)
        found = await self._db.read(self._read)
        for usage_id, others in found.items():
            if self._seen is not None and usage_id not in self._seen:
                self._charge(others)
        self._seen = frozenset(found)

    def _charge(self, usage: Usage) -> None:
        now = clock.monotonic_seconds()
        for name, used in usage.items():
            if (limiter := self._limiters.get(name)) is not None:  # another server may limit what this one does not
                for text, units in used.items():
                    limiter.charge_shared(_parse_key(text), units, now)

    def _write(self, connection: Connection) -> None:
        values = {"usage": json.dumps(dict(self._recent)), "written_at": clock.utc_now()}
        insert = postgresql.insert(rate_usage).values(process_id=self._db.process_id, **values)
        connection.execute(insert.on_conflict_do_update(index_elements=[rate_usage.c.process_id], set_=values))

    def _read(self, connection: Connection) -> dict[str, Usage]:
        """Return what each other server wrote, by ids of their own."""
        query = sa.select(rate_usage.c.usage).where(rate_usage.c.process_id != self._db.process_id)
        return {key: value for text in connection.execute(query).scalars() for key, value in json.loads(text).items()}

    @staticmethod
    def _delete_old(connection: Connection) -> None:
        connection.execute(rate_usage.delete().where(rate_usage.c.written_at < clock.utc_now() - _KEPT))


def _collect(limiter: RateLimiter, now: float) -> dict[str, int]:
    return {_format_key(key): units for key, units in limiter.collect_usage(now, _MOST_KEYS).items()}


def _format_key(key: Hashable) -> str:
    """Return a key as text: that of a credential is bytes, that of an address or a host is a string."""
    return _BYTES + key.hex() if isinstance(key, bytes) else str(key)


def _parse_key(text: str) -> Hashable:
    return bytes.fromhex(text.removeprefix(_BYTES)) if text.startswith(_BYTES) else text
