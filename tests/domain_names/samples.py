"""Domains for tests."""

from datetime import UTC, datetime
from typing import Any

from roost.domain_names.model import Domain, DomainOwner, DomainOwnerKind, DomainStatus


def make_domain(name: str, owner_id: str, kind: DomainOwnerKind = DomainOwnerKind.AGENT, **fields: Any) -> Domain:
    """Return a verified domain, which leads to the gateway of an agent unless `fields` say otherwise."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    usual = {
        "id": name,
        "owner": DomainOwner(kind, owner_id, "t1"),
        "name": name,
        "subdomain": None,
        "port": None,
        "is_protected": True,
        "status": DomainStatus.ACTIVE,
        "reason": None,
        "misses": 0,
        "checked_at": None,
        "created_at": now,
        "updated_at": now,
    }
    return Domain(**{**usual, **fields})
