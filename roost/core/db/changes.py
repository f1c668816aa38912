"""Changes that a transaction makes, collected until it commits (decision 0036).

Code that changes what clients follow records it here, in the same transaction. A commit hook of the database
(`Database.add_commit_hook`) takes the changes and stores them; without one they are dropped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection

from roost.core.actor import Actor

CHANGES = "changes of this transaction"
"""Key in `Connection.info`."""


@dataclass(frozen=True)
class DataChange:
    """A change of the subject `kind` with this `id`, for example `agent` and `created`.

    tenant_id: None if the caller does not know it; then it is the tenant of the agent.
    agent_id: the agent that the subject is or belongs to.
    data: a few small values that show the change, never a secret; its keys are in snake_case.
    actor: who made it; None is the actor of the task that records it.
    """

    kind: str
    verb: str
    id: str
    tenant_id: str | None = None
    agent_id: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    actor: Actor | None = None

    @property
    def type(self) -> str:
        return f"{self.kind}.{self.verb}"


def record_change(connection: Connection, change: DataChange) -> None:
    """Record a change in the caller's write transaction."""
    connection.info.setdefault(CHANGES, []).append(change)


def take_changes(connection: Connection) -> Sequence[DataChange]:
    """Return the changes of the transaction, each once."""
    changes, connection.info[CHANGES] = connection.info.get(CHANGES, []), []
    return changes


def assign_tenant(connection: Connection, agent_id: str, tenant_id: str) -> None:
    """Name the tenant in the transaction's changes of an agent, before its row, which tells the tenant, is deleted."""
    changes: Sequence[DataChange] = connection.info.get(CHANGES, [])
    connection.info[CHANGES] = [
        replace(change, tenant_id=tenant_id) if change.agent_id == agent_id else change for change in changes
    ]
