"""What one server admits, the limiters of the others pay for, too."""

from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass

import pytest
import sqlalchemy as sa

from roost.core import clock
from roost.core.db import Database, UsageExchange
from roost.core.rate_limit import RateLimiter, RateLimitExceeded, RatePolicy

ON_POSTGRESQL = pytest.mark.parametrize("dialect", [pytest.param("postgresql", marks=pytest.mark.postgres)])
QUOTA = 600
REQUESTS = RatePolicy("requests", "requests", QUOTA)
BYTES = RatePolicy("bytes", "bytes", 10**9)


class Server:
    """The limiters of one server, whose exchanges are those of the test."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.requests, self.bytes = RateLimiter(REQUESTS), RateLimiter(BYTES)
        self.exchange = UsageExchange(db, [self.requests, self.bytes], interval=3600.0)

    def take(self, key: bytes | str, count: int = 1) -> int:
        """Return how many of `count` requests at this moment are admitted."""
        admitted = 0
        with suppress(RateLimitExceeded):
            for _ in range(count):
                self.requests.take(key, clock.monotonic_seconds())
                admitted += 1
        return admitted


@dataclass
class Time:
    seconds: float = 1e6


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    now = Time()
    monkeypatch.setattr(clock, "monotonic_seconds", lambda: now.seconds)
    return now


@pytest.fixture
async def servers(database: Database, database_url: str, time: Time) -> AsyncIterator[list[Server]]:
    databases = [database] if database.is_sqlite else [database, Database(database_url), Database(database_url)]
    made = [Server(db) for db in databases]
    for server in made:
        await server.exchange.start()
    yield made
    for server in made:
        await server.exchange.stop()
    for db in databases[1:]:
        db.close()


async def exchange_all(servers: list[Server]) -> None:
    for _ in range(2):  # the first one that writes has not read what the others write after it
        for server in servers:
            await server.exchange.exchange()


async def count_rows(server: Server) -> int:
    return await server.db.read(
        lambda connection: connection.execute(sa.text("SELECT count(*) FROM rate_usage")).scalar_one()
    )


@ON_POSTGRESQL
async def test_servers_share_what_a_caller_and_an_address_used(servers: list[Server]) -> None:
    one, two, three = servers
    assert one.take(b"\x00credential", 400) == 400
    assert two.take("192.0.2.1", 500) == 500
    one.bytes.charge("2001:db8::", 10**10, clock.monotonic_seconds())
    await exchange_all(servers)
    assert [server.take(b"\x00credential", 300) for server in servers] == [200, 200, 200]
    assert three.take("192.0.2.1", 600) == 100
    with pytest.raises(RateLimitExceeded):
        three.bytes.check("2001:db8::", clock.monotonic_seconds())
    assert three.take("192.0.2.2", 600) == 600


@ON_POSTGRESQL
async def test_usage_is_charged_once_however_often_it_is_read(servers: list[Server]) -> None:
    one, two, _ = servers
    one.take("key", 300)
    for _ in range(5):
        await exchange_all(servers)
    assert two.take("key", 600) == 300


@ON_POSTGRESQL
async def test_a_server_that_reads_late_misses_nothing(servers: list[Server], time: Time) -> None:
    one, two, _ = servers
    for _ in range(3):
        one.take("key", 100)
        await one.exchange.exchange()
    await two.exchange.exchange()
    assert two.take("key", 600) == 300
    time.seconds += 1000
    assert two.take("key", 600) == 600


@ON_POSTGRESQL
async def test_earlier_usage_is_not_charged_to_a_new_server(servers: list[Server], database_url: str) -> None:
    one, *_ = servers
    one.take("key", 300)
    await one.exchange.exchange()
    late = Server(Database(database_url))
    await late.exchange.start()
    try:
        await one.exchange.exchange()
        await late.exchange.exchange()
        assert late.take("key", 700) == 600
    finally:
        await late.exchange.stop()
        late.db.close()


@ON_POSTGRESQL
@pytest.mark.parametrize("shares", [(1.0, 1.0, 1.0), (1.0, 0.1, 0.0), (2.0, 0.5, 0.5)])
async def test_three_servers_grant_one_quota_within_a_tenth(
    servers: list[Server], time: Time, shares: tuple[float, ...]
) -> None:
    seconds, admitted = 300, 0
    demand = 10 * QUOTA / 60 / sum(shares)
    for _ in range(seconds):
        for server, share in zip(servers, shares, strict=True):
            admitted += server.take("key", round(demand * share))
        for server in servers:
            await server.exchange.exchange()
        time.seconds += 1
    allowed = QUOTA + (seconds - 1) * QUOTA / 60
    assert 0.9 * allowed <= admitted <= 1.1 * allowed


@ON_POSTGRESQL
async def test_little_usage_and_idle_servers_write_nothing(servers: list[Server]) -> None:
    one, two, _ = servers
    one.take("key", int(0.02 * QUOTA) - 1)
    await exchange_all(servers)
    assert await count_rows(one) == 0
    one.take("key", 2)
    await exchange_all(servers)
    assert await count_rows(one) == 1
    assert two.take("key", 600) == 600 - 13  # with what was too little before
    for _ in range(5):
        await one.exchange.exchange()
    version = one.db.version
    await one.exchange.exchange()
    assert one.db.version == version


@ON_POSTGRESQL
async def test_the_keys_that_used_most_are_shared_first(servers: list[Server], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roost.core.db.usage_exchange._MOST_KEYS", 1)
    one, two, _ = servers
    one.take("less", 100)
    one.take("most", 200)
    await one.exchange.exchange()
    await two.exchange.exchange()
    assert (two.take("most", 600), two.take("less", 600)) == (400, 600)
    await one.exchange.exchange()
    await two.exchange.exchange()
    with pytest.raises(RateLimitExceeded):
        two.requests.take("less", clock.monotonic_seconds() + 9)


@ON_POSTGRESQL
async def test_an_outage_of_the_database_delays_only_the_exchange(
    servers: list[Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, _ = servers

    async def fail(_: Callable[..., object]) -> None:
        raise ConnectionError

    one.take("key", 300)
    with monkeypatch.context() as patched:
        patched.setattr(one.db, "write", fail)
        await one.exchange._task.run_once()
    await exchange_all(servers)
    assert two.take("key", 600) == 300


@pytest.mark.parametrize("dialect", ["sqlite"])
async def test_one_server_on_sqlite_exchanges_nothing(servers: list[Server]) -> None:
    (server,) = servers
    assert server.exchange._task._task is None
    assert server.requests._unshared is None
