"""Tenants: found or made by name, and held still while something of theirs is counted."""

from sqlalchemy import Connection

from roost.core import clock, ids
from roost.identity import store
from roost.identity.caller import Plan
from roost.identity.errors import MissingUser
from roost.identity.model import DEFAULT_TENANT, Tenant


def ensure_tenant(connection: Connection, name: str, plan: Plan | None = None) -> Tenant:
    """The tenant of that name, made when it is new; a given plan is set.

    A new one is on the free plan unless it is told otherwise, or it is the default tenant: the operator's own.
    """
    tenant = store.find_tenant_by_name(connection, name)
    if tenant is None:
        tenant = Tenant(ids.new_id(), name, plan or _first_plan(name), clock.utc_now())
        if not store.add_tenant(connection, tenant):  # another process was first
            return ensure_tenant(connection, name, plan)
    elif plan is not None and plan is not tenant.plan:
        store.set_plan(connection, tenant.id, plan)
        tenant = Tenant(tenant.id, tenant.name, plan, tenant.created_at)
    return tenant


def get_tenant(connection: Connection, tenant_id: str) -> Tenant:
    """Raises MissingUser."""
    return _found(store.find_tenant(connection, tenant_id))


def lock_tenant(connection: Connection, tenant_id: str) -> Tenant:
    """The tenant, locked until the transaction ends: what is counted per tenant is counted behind this.

    Raises MissingUser.
    """
    return _found(store.lock_tenant(connection, tenant_id))


def _found(tenant: Tenant | None) -> Tenant:
    if tenant is None:
        raise MissingUser
    return tenant


def _first_plan(name: str) -> Plan:
    return Plan.PAID if name == DEFAULT_TENANT else Plan.FREE
