"""Rows of last uses of agents, of changes with an actor, of reads of tokens, and of faults."""

from collections.abc import Mapping, Sequence

from tests.migrations.agent_rows import hub_version, operation
from tests.migrations.row_values import THEN, Row

ACTOR = '{"kind":"key","tenant_id":"t1","id":"before","name":"n"}'

FAULT = {"failing_since": THEN, "failed_at": THEN, "failures": 3, "reason": "x" * 1000}

ROWS: Mapping[str, Sequence[Row]] = {
    "0042": [("agent_uses", {"agent_id": "a1", "last_used_at": THEN})],
    "0043": [
        operation("asked", "pending", actor=ACTOR),
        operation("commit", "pending", kind="agent.commit", subject="git/a1"),
    ],
    "0044": [
        ("token_reads", {"key_id": key, "agent_id": "a1", "in_session": in_session, "read_at": THEN})
        for key, in_session in (("before", False), ("before", True), ("revoked", False))
    ],
    "0045": [("operation_faults", {"subject": "a1", "kind": "agent.snapshot", **FAULT})],
    "0090": [hub_version("w9", version="9.0.0", cid="bafybeininth", acknowledgement="r" * 1000)],
}
