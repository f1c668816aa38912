"""SQL of domains. `holder` is the name of a verified domain, so that no name has two owners."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.core.db import UtcTime, insert_or_ignore, metadata, read_one, read_record, record_values, update_or_ignore
from roost.domain_names.model import Domain, DomainOwner, DomainOwnerKind, DomainStatus

domains = sa.Table(
    "domains",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), nullable=False),
    sa.Column("owner_kind", sa.String(16), nullable=False),
    sa.Column("owner_id", sa.String(63), nullable=False),
    sa.Column("name", sa.String(253), nullable=False),
    sa.Column("holder", sa.String(253), unique=True),
    sa.Column("subdomain", sa.String(63)),
    sa.Column("port", sa.Integer),
    sa.Column("is_protected", sa.Boolean, nullable=False),
    sa.Column("cid", sa.String(128)),
    sa.Column("status", sa.String(20), nullable=False),
    sa.Column("reason", sa.Text),
    sa.Column("misses", sa.Integer, nullable=False),
    sa.Column("checked_at", UtcTime),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime, nullable=False),
    sa.UniqueConstraint("owner_kind", "owner_id", "name"),
)

domain_challenges = sa.Table(
    "domain_challenges",
    metadata,
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), primary_key=True),
    sa.Column("domain", sa.String(253), primary_key=True),
    sa.Column("token", sa.String(64), nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
)


def insert_domain(connection: Connection, domain: Domain) -> bool:
    """Insert a domain; return False if a verified one has the name."""
    return insert_or_ignore(connection, domains.insert().values(_values(domain)))


def list_domains(connection: Connection, owner: DomainOwner) -> Sequence[Domain]:
    """List the domains of an owner, first registered first."""
    query = domains.select().where(*_owned_by(owner)).order_by(domains.c.created_at, domains.c.id)
    return [_domain(row) for row in connection.execute(query)]


def list_gateway_domains(connection: Connection, tenant_id: str) -> Sequence[Domain]:
    """List the domains of all storage gateways of a tenant, first registered first."""
    kind = domains.c.owner_kind == DomainOwnerKind.STORAGE_GATEWAY
    query = domains.select().where(domains.c.tenant_id == tenant_id, kind)
    return [_domain(row) for row in connection.execute(query.order_by(domains.c.created_at, domains.c.id))]


def list_at_ports(connection: Connection, ports: Collection[int]) -> Sequence[Domain]:
    """List the domains that lead to one of these ports of an agent's programs."""
    return [_domain(row) for row in connection.execute(domains.select().where(domains.c.port.in_(ports)))]


def get_domain(connection: Connection, owner: DomainOwner, domain_id: str) -> Domain | None:
    return read_one(connection, domains.select().where(*_owned_by(owner), domains.c.id == domain_id), _domain)


def find_holder(connection: Connection, name: str) -> Domain | None:
    """Find the verified domain of a name."""
    return read_one(connection, domains.select().where(domains.c.holder == name), _domain)


def update_domain(connection: Connection, domain: Domain) -> bool:
    """Store a domain; return False if another one is verified for the same name."""
    return update_or_ignore(connection, domains.update().where(domains.c.id == domain.id).values(_values(domain)))


def delete_domain(connection: Connection, domain_id: str) -> None:
    connection.execute(domains.delete().where(domains.c.id == domain_id))


def list_verified(connection: Connection, name: str | None) -> Mapping[str, Domain]:
    """List the verified domain of a name, or all of them, by name."""
    query = domains.select().where(domains.c.holder.is_not(None) if name is None else domains.c.holder == name)
    return {row.name: _domain(row) for row in connection.execute(query)}


def list_unchecked(connection: Connection, before: datetime, limit: int) -> Sequence[Domain]:
    """List verified custom domains that were not checked since `before`, the longest unchecked first."""
    is_due = domains.c.holder.is_not(None) & domains.c.subdomain.is_(None) & (domains.c.checked_at < before)
    query = domains.select().where(is_due).order_by(domains.c.checked_at).limit(limit)
    return [_domain(row) for row in connection.execute(query)]


def find_challenge(connection: Connection, tenant_id: str, domain: str) -> str | None:
    query = sa.select(domain_challenges.c.token).where(
        domain_challenges.c.tenant_id == tenant_id, domain_challenges.c.domain == domain
    )
    return connection.execute(query).scalar_one_or_none()


def insert_challenge(connection: Connection, tenant_id: str, domain: str, token: str, at: datetime) -> None:
    values = {"tenant_id": tenant_id, "domain": domain, "token": token, "created_at": at}
    insert_or_ignore(connection, domain_challenges.insert().values(values))


def delete_oldest_challenges(connection: Connection, tenant_id: str, keep: int) -> None:
    newest = (
        sa.select(domain_challenges.c.domain)
        .where(domain_challenges.c.tenant_id == tenant_id)
        .order_by(domain_challenges.c.created_at.desc(), domain_challenges.c.domain)
        .limit(keep)
    )
    is_old = domain_challenges.c.domain.not_in(newest.scalar_subquery())
    connection.execute(domain_challenges.delete().where(domain_challenges.c.tenant_id == tenant_id, is_old))


def _owned_by(owner: DomainOwner) -> Sequence[sa.ColumnElement[bool]]:
    return (
        domains.c.owner_kind == owner.kind,
        domains.c.owner_id == owner.id,
        domains.c.tenant_id == owner.tenant_id,
    )


def _values(domain: Domain) -> dict[str, Any]:
    owner, holder = domain.owner, domain.name if domain.is_verified else None
    return record_values(
        domains, domain, tenant_id=owner.tenant_id, owner_kind=owner.kind, owner_id=owner.id, holder=holder
    )


def _domain(row: Any) -> Domain:
    owner = DomainOwner(DomainOwnerKind(row.owner_kind), row.owner_id, row.tenant_id)
    return read_record(Domain, row, owner=owner, status=DomainStatus(row.status))
