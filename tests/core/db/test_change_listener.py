"""What one server commits, subscribers of all others learn: at once, and after any trouble a few seconds later."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from roost.core.db import ANY_TOPIC, ChangeListener, Connection, Database, publish_on_commit

pytestmark = pytest.mark.parametrize("dialect", [pytest.param("postgresql", marks=pytest.mark.postgres)])


class Subscriber:
    """Topics that one server learned."""

    def __init__(self, db: Database) -> None:
        self.topics = list[str]()
        db.subscribe(self.topics.extend)

    async def wait_for(self, *topics: str) -> None:
        await until(lambda: {*topics} <= {*self.topics})


@pytest.fixture
def other(database_url: str) -> Iterator[Database]:
    made = Database(database_url)
    yield made
    made.close()


@asynccontextmanager
async def listening(db: Database, **times: float) -> AsyncIterator[ChangeListener]:
    listener = ChangeListener(db, poll_seconds=0.05, **times)
    listener.start()
    try:
        yield listener
    finally:
        await listener.stop()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


def publish(*topics: str) -> Callable[[Connection], None]:
    def write(connection: Connection) -> None:
        for topic in topics:
            publish_on_commit(connection, topic)

    return write


def cut_listeners(connection: Connection) -> int:
    query = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
    return connection.execute(sa.text(query)).scalar_one()


async def test_commits_of_another_server_arrive_and_no_rollbacks(database: Database, other: Database) -> None:
    subscriber = Subscriber(database)

    def fail(connection: Connection) -> None:
        publish("never")(connection)
        raise LookupError

    async with listening(database) as listener:
        await until(lambda: listener.is_listening)
        with pytest.raises(LookupError):
            await other.write(fail)
        await other.write(publish("a", "b"))
        await subscriber.wait_for("a", "b")
        await database.write(publish("own"))
        await other.write(publish("last"))
        await subscriber.wait_for("last")
    assert subscriber.topics.count("own") == 1
    assert "never" not in subscriber.topics


async def test_commits_of_the_command_line_arrive(database: Database, other: Database) -> None:
    subscriber = Subscriber(database)
    async with listening(database) as listener:
        await until(lambda: listener.is_listening)
        await asyncio.to_thread(other.run, publish("a"))
        await subscriber.wait_for("a")


async def test_a_cut_connection_means_any_topic_and_is_made_again(database: Database, other: Database) -> None:
    subscriber = Subscriber(database)
    async with listening(database) as listener:
        for number in range(3):
            await until(lambda: listener.is_listening)
            subscriber.topics.clear()
            assert await other.write(cut_listeners) == 1
            await other.write(publish("perhaps missed"))
            await subscriber.wait_for(ANY_TOPIC)
            await until(lambda: listener.is_listening)
            await other.write(publish(f"{number}"))
            await subscriber.wait_for(f"{number}")


async def test_a_storm_of_commits_arrives_whole(database: Database, other: Database) -> None:
    subscriber = Subscriber(database)
    topics = [f"{number}" for number in range(1000)]
    async with listening(database) as listener:
        await until(lambda: listener.is_listening)
        await asyncio.gather(*(other.write(publish(topic, "x" * 100)) for topic in topics))
        await subscriber.wait_for(*topics)


class PooledDatabase(Database):
    """Database whose own notifications do not arrive, as behind a pooler: channels are those of one database."""

    @property
    def connect_arguments(self) -> Mapping[str, Any]:
        return {**super().connect_arguments, "dbname": "postgres"}


async def test_notifications_that_do_not_arrive_are_logged_and_changes_polled(database_url: str) -> None:
    db = PooledDatabase(database_url)
    subscriber = Subscriber(db)
    with capture_logs() as logs:
        async with listening(db, echo_seconds=0.05) as listener:
            await until(lambda: subscriber.topics.count(ANY_TOPIC) > 2)
            await until(lambda: "database.notifications_missing" in [one["event"] for one in logs])
            assert not listener.is_listening
    assert [one["log_level"] for one in logs] == ["warning"]
    db.close()


async def test_a_database_that_is_away_is_polled_until_it_is_back(database: Database, database_url: str) -> None:
    subscriber = Subscriber(database)
    name, server = sa.make_url(database_url).database, sa.make_url(database_url).set(database="postgres")
    switch = 'ALTER DATABASE "{}" ALLOW_CONNECTIONS {}'
    with psycopg.connect(server.render_as_string(hide_password=False), autocommit=True) as admin:
        admin.execute(switch.format(name, "false").encode())
        async with listening(database, echo_seconds=0.05) as listener:
            await until(lambda: subscriber.topics.count(ANY_TOPIC) > 2)
            assert not listener.is_listening
            admin.execute(switch.format(name, "true").encode())
            await until(lambda: listener.is_listening)


async def test_a_write_whose_caller_is_cancelled_is_published(database: Database, other: Database) -> None:
    subscriber, here = Subscriber(other), Subscriber(database)
    begun, goes_on = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def write(connection: Connection) -> None:
        loop.call_soon_threadsafe(begun.set)
        asyncio.run_coroutine_threadsafe(goes_on.wait(), loop).result()
        publish("a")(connection)

    async with listening(other) as listener:
        await until(lambda: listener.is_listening)
        task = asyncio.create_task(database.write(write))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        goes_on.set()
        await subscriber.wait_for("a")
        await here.wait_for("a")
