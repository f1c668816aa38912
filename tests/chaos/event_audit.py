"""Check that the events of a deployment at rest tell what its rows say."""

import json
from collections.abc import Mapping
from typing import Any

from roost.app.core_services import UNREPORTED_OPERATIONS
from tests.chaos.deployment import Deployment

_CURRENT: Mapping[str, tuple[str, str]] = {
    "agent": ("SELECT id, state FROM agents WHERE NOT deleted", "state"),
    "operation": (f"SELECT id, state FROM operations WHERE kind NOT IN {tuple(UNREPORTED_OPERATIONS)}", "state"),
    "file": ("SELECT id, cid FROM files WHERE deleted_at IS NULL", "cid"),
    "snapshot": ("SELECT id, cid FROM snapshots", "cid"),
    "domain": ("SELECT id, status FROM domains", "status"),
}
"""Rows with their state, and the key of the state in the data of events, by the kind of their subjects."""
_IS_GONE = {"agent.deleted", "file.deleted"}
_KEPT = {"agent", "file"}
"""Kinds whose last event tells whether the row is gone; rows of the others go with an agent, or with time."""


def check_events(deployment: Deployment) -> None:
    """Check that numbers have no gaps, and that the last event of each subject is what its row is now."""
    is_complete = True
    for tenant_id, first, last in deployment.rows("SELECT tenant_id, first_number, last_number FROM event_streams"):
        found = deployment.rows("SELECT number FROM events WHERE tenant_id = :t ORDER BY number", t=tenant_id)
        assert [number for (number,) in found] == list(range(first, last + 1)), "numbers of events have gaps"
        is_complete = is_complete and first == 1
    query = "SELECT subject_kind, subject_id, type, data FROM events ORDER BY tenant_id, number"
    latest = {(kind, subject): (of_type, json.loads(data)) for kind, subject, of_type, data in deployment.rows(query)}
    for kind, (query, key) in _CURRENT.items():
        rows = dict(map(tuple, deployment.rows(query)))
        for subject, state in rows.items():
            _check_row(f"{kind} {subject}", state, latest.get((kind, subject)), key, is_complete=is_complete)
        if kind in _KEPT:
            gone = {subject for of_kind, subject in latest if of_kind == kind} - rows.keys()
            ghosts = {subject for subject in gone if latest[kind, subject][0] not in _IS_GONE}
            assert not ghosts, f"events of no {kind}: {ghosts}"


def _check_row(
    subject: str, state: str, event: tuple[str, Mapping[str, Any]] | None, key: str, *, is_complete: bool
) -> None:
    if event is None:
        assert not is_complete, f"{subject} is {state}, and has no event"
        return
    assert event[0] not in _IS_GONE, f"{subject} is there, and its last event is {event[0]}"
    assert event[1].get(key) == state, f"{subject} is {state}, and its last event tells {event[1]}"
