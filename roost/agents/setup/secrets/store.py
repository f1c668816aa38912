"""SQL of secrets and their attachments."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.agents.setup.secrets.model import Secret, SecretKind
from roost.core.db import UtcTime, metadata, read_one, read_record, record_values
from roost.core.db.sealed import sealed_column

ASSOCIATED_DATA = "secrets/{tenant_id}/{id}/{version}"

secrets = sa.Table(
    "secrets",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), nullable=False),
    sa.Column("name", sa.String(128), nullable=False),
    sa.Column("kind", sa.String(16), nullable=False),
    sealed_column("sealed", ASSOCIATED_DATA),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime, nullable=False),
    sa.UniqueConstraint("tenant_id", "name"),
)

agent_secrets = sa.Table(
    "agent_secrets",
    metadata,
    sa.Column("agent_id", sa.String(36), sa.ForeignKey("agents.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("secret_id", sa.String(36), sa.ForeignKey("secrets.id"), primary_key=True, index=True),
    sa.Column("attached_at", UtcTime, nullable=False),
    sa.Column("synced_version", sa.Integer),
)

_SECRETS_OF_AGENT = (
    sa.select(secrets, agent_secrets.c.synced_version)
    .select_from(sa.join(agent_secrets, secrets, agent_secrets.c.secret_id == secrets.c.id))
    .where(agent_secrets.c.agent_id == sa.bindparam("agent"))
    .order_by(secrets.c.name)
)
"""Runs for every command, and is built once because that takes longer than to run it."""


@dataclass(frozen=True)
class SecretRow:
    """A secret with its envelope; `synced_version` belongs to the attachment through which it was found."""

    secret: Secret
    sealed: bytes
    synced_version: int | None = None


def insert_secret(connection: Connection, secret: Secret, envelope: bytes) -> None:
    connection.execute(secrets.insert().values(record_values(secrets, secret, sealed=envelope)))


def get_secret(connection: Connection, tenant_id: str, secret_id: str) -> Secret | None:
    query = secrets.select().where(secrets.c.id == secret_id, secrets.c.tenant_id == tenant_id)
    return read_one(connection, query, _secret)


def find_secret(connection: Connection, tenant_id: str, name: str) -> Secret | None:
    query = secrets.select().where(secrets.c.name == name, secrets.c.tenant_id == tenant_id)
    return read_one(connection, query, _secret)


def list_tenant_secrets(connection: Connection, tenant_id: str) -> list[SecretRow]:
    """List the tenant's secrets by name."""
    query = secrets.select().where(secrets.c.tenant_id == tenant_id).order_by(secrets.c.name)
    return [SecretRow(_secret(row), row.sealed) for row in connection.execute(query)]


def list_names(connection: Connection, tenant_id: str) -> set[str]:
    return set(connection.execute(sa.select(secrets.c.name).where(secrets.c.tenant_id == tenant_id)).scalars())


def set_value(connection: Connection, secret: Secret, envelope: bytes) -> None:
    """Update the value, version and time of a secret."""
    query = secrets.update().where(secrets.c.id == secret.id)
    connection.execute(query.values(sealed=envelope, version=secret.version, updated_at=secret.updated_at))


def delete_secret(connection: Connection, secret_id: str) -> None:
    connection.execute(secrets.delete().where(secrets.c.id == secret_id))


def list_agent_secrets(connection: Connection, agent_id: str) -> list[SecretRow]:
    """List the agent's secrets by name."""
    rows = connection.execute(_SECRETS_OF_AGENT, {"agent": agent_id})
    return [SecretRow(_secret(row), row.sealed, row.synced_version) for row in rows]


def list_agents(connection: Connection, secret_id: str) -> list[str]:
    query = sa.select(agent_secrets.c.agent_id).where(agent_secrets.c.secret_id == secret_id)
    return list(connection.execute(query).scalars())


def list_attachments(connection: Connection, tenant_id: str) -> list[tuple[str, str]]:
    """List (secret id, agent id) pairs of the tenant."""
    joined = sa.join(agent_secrets, secrets, agent_secrets.c.secret_id == secrets.c.id)
    query = sa.select(agent_secrets.c.secret_id, agent_secrets.c.agent_id).select_from(joined)
    return [(row.secret_id, row.agent_id) for row in connection.execute(query.where(secrets.c.tenant_id == tenant_id))]


def insert_attachments(connection: Connection, agent_id: str, secret_ids: Iterable[str], at: datetime) -> None:
    for secret_id in secret_ids:
        connection.execute(agent_secrets.insert().values(agent_id=agent_id, secret_id=secret_id, attached_at=at))


def delete_attachment(connection: Connection, agent_id: str, secret_id: str) -> bool:
    query = agent_secrets.delete().where(agent_secrets.c.agent_id == agent_id, agent_secrets.c.secret_id == secret_id)
    return connection.execute(query).rowcount == 1


def delete_attachments(connection: Connection, agent_id: str) -> None:
    connection.execute(agent_secrets.delete().where(agent_secrets.c.agent_id == agent_id))


def set_synced_versions(connection: Connection, agent_id: str, versions: Mapping[str, int]) -> None:
    """Record the versions that the agent's gateway uses: secret id -> version."""
    for secret_id, version in versions.items():
        query = agent_secrets.update().where(
            agent_secrets.c.agent_id == agent_id, agent_secrets.c.secret_id == secret_id
        )
        connection.execute(query.values(synced_version=version))


def _secret(row: Any) -> Secret:
    return read_record(Secret, row, kind=SecretKind(row.kind))
