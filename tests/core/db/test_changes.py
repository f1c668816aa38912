"""Changes belong to one transaction, whose last step is the commit hooks."""

import pytest
from sqlalchemy import Connection

from roost.core.db import Database, DataChange, assign_tenant, record_change, take_changes, write_change
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


async def test_changes_of_an_agent_get_its_tenant_before_it_is_gone(database: Database) -> None:
    taken: list[DataChange] = []
    database.add_commit_hook(lambda connection: taken.extend(take_changes(connection)))

    def delete(connection: Connection) -> None:
        assign_tenant(connection, "ada", "t")  # without a change before
        for agent_id in ("ada", "bob"):
            record_change(connection, DataChange("operation", "changed", agent_id, agent_id=agent_id))
        assign_tenant(connection, "ada", "t")

    await database.write(delete)
    assert [(change.id, change.tenant_id) for change in taken] == [("ada", "t"), ("bob", None)]
