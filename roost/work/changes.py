"""Changes of operations, for the tenants that follow them."""

from roost.core.db import Connection, DataChange, record_change
from roost.work.model import JSON, Operation, OperationState


def record_operation(
    connection: Connection,
    operation: Operation,
    state: OperationState,
    error: JSON = None,
    step: str | None = None,
) -> None:
    """Record the state of an operation; an ordered one belongs to the agent of its subject."""
    agent_id = operation.subject.partition("/")[0] if operation.tenant_id is None else None
    data = {
        "kind": operation.kind,
        "state": state.value,
        "step": step,
        "attempts": operation.attempts,
        "error": error and error["message"],
    }
    change = DataChange("operation", "changed", operation.id, operation.tenant_id, agent_id, data, operation.actor)
    record_change(connection, change)
