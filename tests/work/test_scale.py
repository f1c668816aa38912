"""The work of a claim among many operations, counted in instructions of SQLite, which are no time."""

from datetime import timedelta

import pytest

from roost.core import clock
from roost.core.actor import SERVER, acting_as
from roost.core.db import Connection, Database
from roost.work import store
from tests.support.databases import count_steps

MINUTE = timedelta(minutes=1)


async def test_a_claim_does_not_read_all_that_waits(database: Database) -> None:
    if not database.is_sqlite:
        pytest.skip("only SQLite counts instructions")
    counts: list[int] = []

    def write(connection: Connection) -> None:
        for number in range(1000):
            store.add_operation(connection, "k", f"agent/{number}")
            if number in {99, 999}:
                with count_steps(connection) as counted:
                    end = clock.utc_now() + MINUTE
                    store.claim_operations(connection, ["k"], owner="a", until=end, limit=1, requested_first=True)
                counts.append(counted[0])

    with acting_as(SERVER):
        await database.write(write)
    assert counts[1] - counts[0] < 10 * 900  # an entry of the index for each that waits, but not its row


@pytest.mark.parametrize("requested_first", [False, True])
async def test_a_claim_of_another_kind_reads_nothing_that_waits(database: Database, requested_first: bool) -> None:
    if not database.is_sqlite:
        pytest.skip("only SQLite counts instructions")

    def write(connection: Connection) -> int:
        for number in range(500):
            store.add_operation(connection, "other", f"agent/{number}")
        with count_steps(connection) as counted:
            end = clock.utc_now() + MINUTE
            store.claim_operations(connection, ["k"], owner="a", until=end, limit=1, requested_first=requested_first)
        return counted[0]

    assert await database.write(write) < 500


async def test_operations_of_one_subject_are_found_without_reading_the_others(database: Database) -> None:
    if not database.is_sqlite:
        pytest.skip("only SQLite counts instructions")

    def write(connection: Connection) -> int:
        for number in range(500):
            store.add_operation(connection, "k", f"agent/{number}")
        with count_steps(connection) as counted:
            (found,) = store.list_waiting_operations(connection, "k", "agent/7")
        assert found.subject == "agent/7"
        return counted[0]

    assert await database.write(write) < 500


async def test_more_subjects_than_a_statement_takes_are_asked_for(database: Database) -> None:
    def write(connection: Connection) -> set[str]:
        store.add_operation(connection, "k", "agent/69999")
        return store.list_busy_subjects(connection, [f"agent/{number}" for number in range(70_000)], ["k"])

    with acting_as(SERVER):
        assert await database.write(write) == {"agent/69999"}
