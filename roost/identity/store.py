"""SQL of tenants, keys and tokens."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.core.db import JsonText, UtcTime, insert_or_ignore, metadata, read_one, read_record, record_values
from roost.core.db.sealed import sealed_column
from roost.identity.caller import Plan
from roost.identity.model import ApiKey, KeyFilter, Tenant, TokenRead

SIGNING_KEY_ASSOCIATED_DATA = "signing_keys/{id}"
GATEWAY_TOKEN_ASSOCIATED_DATA = "gateway_tokens/{agent_id}"  # noqa: S105 - no secret

tenants = sa.Table(
    "tenants",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("name", sa.String(100), nullable=False, unique=True),
    sa.Column("plan", sa.String(10), nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
)

api_keys = sa.Table(
    "api_keys",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), nullable=False, index=True),
    sa.Column("name", sa.String(100), nullable=False),
    sa.Column("scopes", JsonText, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("expires_at", UtcTime, nullable=False),
    sa.Column("revoked_at", UtcTime),
    sa.Column("handle", sa.String(20)),
    sa.Column("proof", sa.LargeBinary(32)),
    sa.Column("max_uses", sa.Integer),
    sa.Column("uses", sa.Integer, nullable=False, server_default=sa.text("0")),
    sa.Index("uq_api_keys_handle", "handle", unique=True),
)

signing_keys = sa.Table(
    "signing_keys",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sealed_column("sealed", SIGNING_KEY_ASSOCIATED_DATA),
    sa.Column("created_at", UtcTime, nullable=False),
)

gateway_tokens = sa.Table(
    "gateway_tokens",
    metadata,
    sa.Column("agent_id", sa.String(36), primary_key=True),
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), nullable=False, index=True),
    sa.Column("digest", sa.LargeBinary(32), nullable=False, unique=True),
    sealed_column("sealed", GATEWAY_TOKEN_ASSOCIATED_DATA),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("rotated_at", UtcTime, index=True),
)

token_reads = sa.Table(
    "token_reads",
    metadata,
    sa.Column("key_id", sa.String(36), sa.ForeignKey("api_keys.id"), primary_key=True),
    sa.Column(
        "agent_id", sa.String(36), sa.ForeignKey("gateway_tokens.agent_id", ondelete="CASCADE"), primary_key=True
    ),
    sa.Column("in_session", sa.Boolean, primary_key=True),
    sa.Column("read_at", UtcTime, nullable=False),
    sa.Index("ix_token_reads_agent_id", "agent_id"),
)
"""Which keys, and browser sessions of which keys, have read the gateway tokens that agents have now."""

_TOKEN_OF_AGENT = gateway_tokens.select().where(gateway_tokens.c.agent_id == sa.bindparam("agent"))
_TOKEN_BY_DIGEST = gateway_tokens.select().where(gateway_tokens.c.digest == sa.bindparam("sought"))
"""Frequent queries, built once because that takes longer than to run them."""


def add_tenant(connection: Connection, tenant: Tenant) -> bool:
    """Insert a tenant; return False if the name is taken."""
    return insert_or_ignore(connection, tenants.insert().values(record_values(tenants, tenant, plan=tenant.plan.value)))


def find_tenant_by_name(connection: Connection, name: str) -> Tenant | None:
    return read_one(connection, tenants.select().where(tenants.c.name == name), _tenant)


def find_tenant(connection: Connection, tenant_id: str) -> Tenant | None:
    return read_one(connection, tenants.select().where(tenants.c.id == tenant_id), _tenant)


def lock_tenant(connection: Connection, tenant_id: str) -> Tenant | None:
    """Return the tenant and lock its row until the transaction ends; lock it before counting its rows."""
    query = tenants.select().where(tenants.c.id == tenant_id)
    # Rows that refer to the tenant share its key: without `key_share`, two transactions that insert some, and lock it
    # then, wait for each other.
    return read_one(connection, query.with_for_update(key_share=True), _tenant)


def set_plan(connection: Connection, tenant_id: str, plan: Plan) -> None:
    connection.execute(tenants.update().where(tenants.c.id == tenant_id).values(plan=plan.value))


def add_key(connection: Connection, key: ApiKey) -> None:
    connection.execute(api_keys.insert().values(record_values(api_keys, key, scopes=sorted(key.scopes))))


def find_key(connection: Connection, key_id: str) -> ApiKey | None:
    return read_one(connection, api_keys.select().where(api_keys.c.id == key_id), _key)


def find_key_by_handle(connection: Connection, handle: str) -> ApiKey | None:
    return read_one(connection, api_keys.select().where(api_keys.c.handle == handle), _key)


def use_key(connection: Connection, key_id: str) -> bool:
    """Count a request; return False if the key is exhausted."""
    is_usable = (api_keys.c.id == key_id, api_keys.c.uses < api_keys.c.max_uses)
    return connection.execute(api_keys.update().where(*is_usable).values(uses=api_keys.c.uses + 1)).rowcount == 1


def filter_keys(
    connection: Connection, tenant_id: str, key_filter: KeyFilter, offset: int, limit: int
) -> tuple[list[ApiKey], int]:
    """List a page of the matching keys, newest first, and return their total."""
    conditions = [api_keys.c.tenant_id == tenant_id]
    is_exhausted = sa.and_(api_keys.c.max_uses.is_not(None), api_keys.c.uses >= api_keys.c.max_uses)
    for expected, condition in (
        (key_filter.revoked, api_keys.c.revoked_at.is_not(None)),
        (key_filter.limited, api_keys.c.max_uses.is_not(None)),
        (key_filter.exhausted, is_exhausted),
    ):
        if expected is not None:
            conditions.append(condition if expected else sa.not_(condition))
    if key_filter.name is not None:
        conditions.append(api_keys.c.name.icontains(key_filter.name, autoescape=True))
    count = connection.execute(sa.select(sa.func.count()).select_from(api_keys).where(*conditions)).scalar_one()
    order = (api_keys.c.created_at.desc(), api_keys.c.id)
    query = api_keys.select().where(*conditions).order_by(*order).offset(offset).limit(limit)
    return [_key(row) for row in connection.execute(query)], count


def list_keys(connection: Connection, tenant_id: str) -> list[ApiKey]:
    query = api_keys.select().where(api_keys.c.tenant_id == tenant_id).order_by(api_keys.c.created_at)
    return [_key(row) for row in connection.execute(query)]


def revoke_key(connection: Connection, key_id: str, at: datetime) -> bool:
    query = api_keys.update().where(api_keys.c.id == key_id, api_keys.c.revoked_at.is_(None))
    return connection.execute(query.values(revoked_at=at)).rowcount == 1


def add_signing_key(connection: Connection, key_id: str, sealed: bytes, at: datetime) -> None:
    connection.execute(signing_keys.insert().values(id=key_id, sealed=sealed, created_at=at))


def all_signing_keys(connection: Connection) -> list[tuple[str, bytes]]:
    """List the signing keys, oldest first."""
    rows = connection.execute(signing_keys.select().order_by(signing_keys.c.created_at))
    return [(row.id, row.sealed) for row in rows]


def add_gateway_token(
    connection: Connection, agent_id: str, tenant_id: str, digest: bytes, sealed: bytes, at: datetime
) -> None:
    row = {"agent_id": agent_id, "tenant_id": tenant_id, "digest": digest, "sealed": sealed, "created_at": at}
    connection.execute(gateway_tokens.insert().values(row))


def replace_gateway_token(connection: Connection, agent_id: str, digest: bytes, sealed: bytes, at: datetime) -> bool:
    connection.execute(token_reads.delete().where(token_reads.c.agent_id == agent_id))
    query = gateway_tokens.update().where(gateway_tokens.c.agent_id == agent_id)
    return connection.execute(query.values(digest=digest, sealed=sealed, created_at=at, rotated_at=at)).rowcount == 1


def list_rotated_tokens(connection: Connection, since: datetime) -> Sequence[Any]:
    """List the agent ids and digests of tokens that replaced others after a time."""
    columns = gateway_tokens.c
    return connection.execute(sa.select(columns.agent_id, columns.digest).where(columns.rotated_at > since)).all()


def add_token_read(connection: Connection, key_id: str, read: TokenRead) -> None:
    """Insert the first read of an agent's present token by a key, or by sessions of that key."""
    insert_or_ignore(connection, token_reads.insert().values(key_id=key_id, **vars(read)))


def list_token_reads(connection: Connection, key_id: str) -> list[TokenRead]:
    query = token_reads.select().where(token_reads.c.key_id == key_id).order_by(token_reads.c.read_at)
    return [read_record(TokenRead, row) for row in connection.execute(query)]


def remove_gateway_token(connection: Connection, agent_id: str) -> None:
    connection.execute(gateway_tokens.delete().where(gateway_tokens.c.agent_id == agent_id))


def find_gateway_token(connection: Connection, agent_id: str) -> Any:
    """Return the row of an agent's token (agent_id, tenant_id, digest, sealed, created_at) or None."""
    return connection.execute(_TOKEN_OF_AGENT, {"agent": agent_id}).first()


def find_gateway_token_by_digest(connection: Connection, digest: bytes) -> Any:
    return connection.execute(_TOKEN_BY_DIGEST, {"sought": digest}).first()


def _tenant(row: Any) -> Tenant:
    return read_record(Tenant, row, plan=Plan(row.plan))


def _key(row: Any) -> ApiKey:
    proof = None if row.proof is None else bytes(row.proof)
    return read_record(ApiKey, row, scopes=frozenset(row.scopes), proof=proof)
