"""Changes belong to one transaction, whose last step is the commit hooks."""

import pytest
from sqlalchemy import Connection

from roost.core.db import Database, DataChange, record_change, take_changes, write_change
from roost.core.problem import ServiceUnavailable

CHANGE = DataChange("agent", "changed", "a", "t")


async def test_a_hook_takes_the_changes_of_its_transaction_only(database: Database) -> None:
    taken: list[list[DataChange]] = []
    database.add_commit_hook(lambda connection: taken.append(list(take_changes(connection))))

    def fail(connection: Connection) -> None:
        record_change(connection, CHANGE)
        raise ValueError

    with pytest.raises(ValueError):
        await database.write(fail)
    await write_change(database, CHANGE)
    database.run(lambda connection: record_change(connection, CHANGE))
    await database.write(lambda _: None)
    assert taken == [[CHANGE], [CHANGE], []]
    assert CHANGE.type == "agent.changed"


async def test_a_change_outside_of_the_database_stands_without_it(database: Database) -> None:
    def refuse(_: Connection) -> None:
        raise ServiceUnavailable

    database.add_commit_hook(refuse)
    await write_change(database, CHANGE)
    with pytest.raises(ServiceUnavailable):
        await database.write(lambda _: None)
