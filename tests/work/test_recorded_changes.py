"""Operations record each change of their state, for the tenant that follows it."""

from collections.abc import Callable
from typing import Any

from roost.core import clock
from roost.core.db import Connection, Database, take_changes
from roost.work import store
from roost.work.model import Operation


async def changes(db: Database, act: Callable[[Connection], Any]) -> tuple[Any, list[Any]]:
    def run(connection: Connection) -> tuple[Any, list[Any]]:
        result = act(connection)
        return result, [(one.id, one.tenant_id, one.agent_id, dict(one.data)) for one in take_changes(connection)]

    return await db.write(run)


def claim(connection: Connection) -> Operation:
    (claimed,) = store.claim_operations(connection, ["k"], owner="o", until=clock.utc_now(), limit=1)
    return claimed


async def test_an_agents_operation_from_its_start_to_its_end(database: Database) -> None:
    added, recorded = await changes(database, lambda c: store.add_operation(c, "k", "ada/scripts", host="o"))
    data = {"kind": "k", "state": "pending", "step": None, "attempts": 0, "error": None}
    assert recorded == [(added.id, None, "ada", data)]
    claimed, recorded = await changes(database, claim)
    assert recorded == [(added.id, None, "ada", data | {"state": "running", "attempts": 1})]
    _, recorded = await changes(database, lambda c: store.update_payload(c, claimed, {"secret": "x"}, "save"))
    assert [one[3] for one in recorded] == [data | {"state": "running", "attempts": 1, "step": "save"}]
    assert (await changes(database, lambda c: store.release_operations(c, "o")))[0] == 1
    claimed, _ = await changes(database, claim)
    error = {"kind": "unavailable", "message": "It broke"}
    _, recorded = await changes(database, lambda c: store.fail_operation(c, claimed, error))
    assert [one[3] for one in recorded] == [data | {"state": "failed", "attempts": 2, "error": "It broke"}]


async def test_an_operation_of_a_tenant(database: Database) -> None:
    added, recorded = await changes(database, lambda c: store.add_operation(c, "k", "pins/1", tenant_id="t"))
    assert [one[:3] for one in recorded] == [(added.id, "t", None)]
