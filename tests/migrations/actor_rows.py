"""Rows of last uses of agents, and of changes with an actor."""

from collections.abc import Mapping, Sequence

from tests.migrations.agent_rows import operation
from tests.migrations.row_values import THEN, Row

ACTOR = '{"kind":"key","tenant_id":"t1","id":"before","name":"n"}'

ROWS: Mapping[str, Sequence[Row]] = {
    "0042": [("agent_uses", {"agent_id": "a1", "last_used_at": THEN})],
    "0043": [operation("asked", "pending", actor=ACTOR)],
}
