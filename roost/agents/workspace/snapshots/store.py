"""Tables and SQL of snapshots."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.agents.workspace.snapshots.model import SkippedFile, SkipReason, Snapshot, SnapshotTrigger
from roost.core.db import JsonText, UtcTime, metadata, read_one, read_record, record_values

snapshots = sa.Table(
    "snapshots",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("agent_id", sa.String(36), sa.ForeignKey("agents.id", ondelete="CASCADE"), nullable=False),
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), nullable=False),
    sa.Column("cid", sa.String(128), nullable=False),
    sa.Column("commit_sha", sa.String(64)),
    sa.Column("trigger", sa.String(16), nullable=False),
    sa.Column("change_summary", sa.Text, nullable=False),
    sa.Column("files", sa.Integer, nullable=False),
    sa.Column("size", sa.BigInteger, nullable=False),
    sa.Column("skipped", JsonText, nullable=False),
    sa.Column("skipped_count", sa.Integer, nullable=False),
    sa.Column("label", sa.String(100)),
    sa.Column("packs", JsonText, nullable=False),
    sa.Column("searched", JsonText, nullable=False, server_default=sa.text("'[]'")),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("state_cid", sa.String(128)),
    sa.Column("state_files", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.Column("state_size", sa.BigInteger, nullable=False, server_default=sa.text("0")),
    sa.Column("state_packs", JsonText, nullable=False, server_default=sa.text("'[]'")),
    sa.Index("ix_snapshots_agent_id_created_at_id", "agent_id", "created_at", "id"),
    sa.Index("ix_snapshots_tenant_id_cid", "tenant_id", "cid"),
)

workspace_indexes = sa.Table(
    "workspace_indexes",
    metadata,
    sa.Column("agent_id", sa.String(36), sa.ForeignKey("agents.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("snapshot_id", sa.String(36), sa.ForeignKey("snapshots.id", ondelete="SET NULL")),
    sa.Column("synced_at", UtcTime, nullable=False),
    sa.Column("data", sa.LargeBinary, nullable=False),
    sa.Column("state_data", sa.LargeBinary),
)
"""The snapshot that a workspace equalled at `synced_at`, the files that it had then, and those of the last state."""


def insert_snapshot(connection: Connection, snapshot: Snapshot) -> None:
    values = record_values(
        snapshots,
        snapshot,
        trigger=snapshot.trigger.value,
        packs=list(snapshot.packs),
        state_packs=list(snapshot.state_packs),
        searched=sorted(snapshot.searched),
        skipped=[[file.path, file.reason.value, file.secret] for file in snapshot.skipped],
    )
    connection.execute(snapshots.insert().values(values))


def list_snapshots(
    connection: Connection, agent_id: str, limit: int | None = None, offset: int = 0
) -> Sequence[Snapshot]:
    """List snapshots of an agent, newest first."""
    query = snapshots.select().where(snapshots.c.agent_id == agent_id)
    query = query.order_by(snapshots.c.created_at.desc(), snapshots.c.id.desc()).limit(limit).offset(offset)
    return [_snapshot(row) for row in connection.execute(query)]


def find_snapshot(connection: Connection, agent_id: str, cid: str, snapshot_id: str | None = None) -> Snapshot | None:
    """Return the newest snapshot of an agent with that CID, or the one that also has that id."""
    query = snapshots.select().where(snapshots.c.agent_id == agent_id, snapshots.c.cid == cid)
    if snapshot_id is not None:
        query = query.where(snapshots.c.id == snapshot_id)
    return read_one(connection, query.order_by(snapshots.c.created_at.desc()).limit(1), _snapshot)


def find_tenant_snapshot(connection: Connection, tenant_id: str, cid: str) -> Snapshot | None:
    """Return the newest snapshot of a tenant's agents with that CID."""
    query = snapshots.select().where(snapshots.c.tenant_id == tenant_id, snapshots.c.cid == cid)
    return read_one(connection, query.order_by(snapshots.c.created_at.desc()).limit(1), _snapshot)


def get_snapshot(connection: Connection, snapshot_id: str) -> Snapshot | None:
    return read_one(connection, snapshots.select().where(snapshots.c.id == snapshot_id), _snapshot)


def set_label(connection: Connection, snapshot_id: str, label: str | None) -> None:
    connection.execute(snapshots.update().where(snapshots.c.id == snapshot_id).values(label=label))


def find_base(connection: Connection, agent_id: str, head: str | None) -> Snapshot | None:
    """Return the snapshot whose commit is `head`, or else the newest one with a commit."""
    query = snapshots.select().where(snapshots.c.agent_id == agent_id, snapshots.c.commit_sha.is_not(None))
    order = (sa.case((snapshots.c.commit_sha == head, 0), else_=1), snapshots.c.created_at.desc())
    return read_one(connection, query.order_by(*order).limit(1), _snapshot)


def set_commit(connection: Connection, snapshot_id: str, commit: str) -> None:
    connection.execute(snapshots.update().where(snapshots.c.id == snapshot_id).values(commit_sha=commit))


def set_capture(
    connection: Connection,
    snapshot_id: str,
    packs: Sequence[str],
    state_packs: Sequence[str] | None,
    searched: Iterable[str],
) -> None:
    """Save what another reading of the same content found out; without `state_packs`, its state was not read."""
    values = {"packs": list(packs), "searched": sorted(searched)}
    given = {} if state_packs is None else {"state_packs": list(state_packs)}
    connection.execute(snapshots.update().where(snapshots.c.id == snapshot_id).values(values | given))


def delete_snapshots(connection: Connection, ids: Sequence[str]) -> None:
    connection.execute(snapshots.delete().where(snapshots.c.id.in_(ids)))


def delete_all(connection: Connection, agent_id: str) -> None:
    connection.execute(workspace_indexes.delete().where(workspace_indexes.c.agent_id == agent_id))
    connection.execute(snapshots.delete().where(snapshots.c.agent_id == agent_id))


def get_index(connection: Connection, agent_id: str, *, of_state: bool = False) -> bytes | None:
    column = workspace_indexes.c.state_data if of_state else workspace_indexes.c.data
    query = sa.select(column).where(workspace_indexes.c.agent_id == agent_id)
    return connection.execute(query).scalar_one_or_none()


def get_sync(connection: Connection, agent_id: str) -> tuple[datetime, str | None] | None:
    """Return when a workspace was last compared, and the id of the snapshot that it equalled."""
    table = workspace_indexes.c
    row = connection.execute(sa.select(table.synced_at, table.snapshot_id).where(table.agent_id == agent_id)).first()
    return None if row is None else (row.synced_at, row.snapshot_id)


def save_index(
    connection: Connection,
    agent_id: str,
    snapshot_id: str,
    at: datetime,
    data: bytes | None = None,
    state_data: bytes | None = None,
) -> None:
    """Save what a workspace equals; without `data` or `state_data`, those files are as they were."""
    given = {"data": data, "state_data": state_data}
    values = {
        "snapshot_id": snapshot_id,
        "synced_at": at,
        **{key: one for key, one in given.items() if one is not None},
    }
    saved = workspace_indexes.update().where(workspace_indexes.c.agent_id == agent_id).values(values)
    if connection.execute(saved).rowcount == 0:
        connection.execute(workspace_indexes.insert().values(agent_id=agent_id, **values))


def _snapshot(row: Any) -> Snapshot:
    skipped = [SkippedFile(path, SkipReason(reason), secret) for path, reason, secret in row.skipped]
    searched = frozenset(row.searched)
    return read_record(Snapshot, row, trigger=SnapshotTrigger(row.trigger), skipped=skipped, searched=searched)
