"""SQL of the manifests of repositories."""

from dataclasses import asdict
from typing import Any

import sqlalchemy as sa

from roost.core.db import Connection, JsonText, UtcTime, insert_or_ignore, metadata, read_one, read_record
from roost.drivers.git.manifest_contract import RepositoryManifest, RepositoryState, StoredPack

git_repositories = sa.Table(
    "git_repositories",
    metadata,
    sa.Column("agent_id", sa.String(36), sa.ForeignKey("agents.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("generation", sa.BigInteger, nullable=False),
    sa.Column("main", sa.String(40)),
    sa.Column("pending", sa.String(40)),
    sa.Column("packs", JsonText, nullable=False),
    sa.Column("changed_at", UtcTime, nullable=False),
    sa.Column("collected_at", UtcTime, nullable=False),
)
_r = git_repositories.c
_STATE = sa.select(*(_r[name] for name in ("generation", "main", "pending"))).where(
    _r.agent_id == sa.bindparam("agent")
)


def get_state(connection: Connection, agent_id: str) -> RepositoryState | None:
    return read_one(connection, _STATE, lambda row: read_record(RepositoryState, row), {"agent": agent_id})


def get_manifest(connection: Connection, agent_id: str) -> RepositoryManifest | None:
    return read_one(connection, git_repositories.select().where(_r.agent_id == agent_id), _manifest)


def replace_manifest(connection: Connection, agent_id: str, manifest: RepositoryManifest) -> bool:
    """Replace the manifest of the generation before; return False if there is another one."""
    values = {
        **asdict(manifest.state),
        "packs": [asdict(pack) for pack in manifest.packs],
        "changed_at": manifest.changed_at,
        "collected_at": manifest.collected_at,
    }
    before = manifest.state.generation - 1
    if not before:
        return insert_or_ignore(connection, git_repositories.insert().values(agent_id=agent_id, **values))
    row = git_repositories.update().where(_r.agent_id == agent_id, _r.generation == before)
    return connection.execute(row.values(values)).rowcount == 1


def has_manifests(connection: Connection) -> bool:
    """Return whether any repository is in the blob store."""
    return connection.execute(sa.select(_r.agent_id).limit(1)).first() is not None


def delete_manifest(connection: Connection, agent_id: str) -> None:
    connection.execute(git_repositories.delete().where(_r.agent_id == agent_id))


def _manifest(row: Any) -> RepositoryManifest:
    packs = [StoredPack(**pack) for pack in row.packs]
    return read_record(RepositoryManifest, row, state=read_record(RepositoryState, row), packs=packs)
