"""Finding, creating and locking tenants."""

from sqlalchemy import Connection

from roost.core import clock, ids
from roost.identity import store
from roost.identity.caller import Plan
from roost.identity.errors import MissingUser
from roost.identity.model import DEFAULT_TENANT, Tenant


def ensure_tenant(connection: Connection, name: str, plan: Plan | None = None) -> Tenant:
    """Return the tenant with this name, created if necessary; set its plan if given.

    By default a new tenant has the free plan, the operator's own default tenant the paid plan.
    """
    tenant = store.find_tenant_by_name(connection, name)
    if tenant is None:
        default = Plan.PAID if name == DEFAULT_TENANT else Plan.FREE
        tenant = Tenant(ids.new_id(), name, plan or default, clock.utc_now())
        if not store.add_tenant(connection, tenant):  # another process was first
            return ensure_tenant(connection, name, plan)
    elif plan is not None and plan is not tenant.plan:
        store.set_plan(connection, tenant.id, plan)
        tenant = Tenant(tenant.id, tenant.name, plan, tenant.created_at)
    return tenant


def get_tenant(connection: Connection, tenant_id: str) -> Tenant:
    """Return a tenant. Raises MissingUser."""
    return _require(store.find_tenant(connection, tenant_id))


def lock_tenant(connection: Connection, tenant_id: str) -> Tenant:
    """Lock a tenant until the transaction ends, for exact limits per tenant. Raises MissingUser."""
    return _require(store.lock_tenant(connection, tenant_id))


def _require(tenant: Tenant | None) -> Tenant:
    if tenant is None:
        raise MissingUser
    return tenant
