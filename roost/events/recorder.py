"""Stores the changes of every transaction as events, in that transaction."""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence

from sqlalchemy import Connection

from roost.core import clock
from roost.core.actor import SERVER, Actor, current_actor
from roost.core.db import Database, DataChange, publish_on_commit, take_changes
from roost.events import store
from roost.events.model import Event, EventType, shorten_data

FindTenant = Callable[[Connection, str], str | None]
"""Returns the tenant of an agent; None if the agent is gone."""
TOPIC = "events/"
"""Begins the topic, with the tenant's id, that is published when events are committed."""


class EventRecorder:
    """Commit hook of the database.

    It runs at the end of a transaction, so the lock of the tenant's numbers is the last one that a transaction takes.
    """

    def __init__(self, db: Database, find_tenant: FindTenant, unreported: Collection[str] = ()) -> None:
        """`unreported`: kinds of operations that are no events, because they are many and no client waits for one."""
        self._find_tenant = find_tenant
        self._unreported = frozenset(unreported)
        db.add_commit_hook(self.store_changes)

    def store_changes(self, connection: Connection) -> None:
        """Store the changes of the transaction; those of one subject and type become one event."""
        by_tenant: defaultdict[str, dict[tuple[str, str], DataChange]] = defaultdict(dict)
        for change in take_changes(connection):
            if change.kind == "operation" and change.data["kind"] in self._unreported:
                continue
            tenant_id = change.tenant_id or self._find_tenant(connection, change.agent_id or "")
            if tenant_id is not None:
                by_tenant[tenant_id][change.type, change.id] = change
        for tenant_id, changes in sorted(by_tenant.items()):  # one order of locks: no deadlock
            _store(connection, tenant_id, list(changes.values()))


def _store(connection: Connection, tenant_id: str, changes: Sequence[DataChange]) -> None:
    first, now = store.take_numbers(connection, tenant_id, len(changes)), clock.utc_now()
    rows = [
        Event(
            tenant_id=tenant_id,
            number=number,
            type=EventType(change.type),
            at=now,
            subject_kind=change.kind,
            subject_id=change.id,
            agent_id=change.agent_id,
            data=shorten_data(change.data),
            actor=_visible_actor(change.actor or current_actor.get(), tenant_id),
        )
        for number, change in enumerate(changes, first)
    ]
    store.insert_events(connection, rows)
    publish_on_commit(connection, TOPIC + tenant_id)


def _visible_actor(actor: Actor, tenant_id: str) -> Actor:
    """Return an actor as its own tenant may see it; others do not learn whom the operator's tenant has."""
    return actor if actor.tenant_id == tenant_id else SERVER
