"""Find, create and lock tenants; tell the operator of a deployment, the owner of its default tenant (decision 0011)."""

from dataclasses import replace

from sqlalchemy import Connection

from roost.core import clock, ids
from roost.identity import store
from roost.identity.caller import Caller, CallerKind, Plan
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
        tenant = replace(tenant, plan=plan)
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


def is_operator(connection: Connection, caller: Caller) -> bool:
    """Return whether a caller is the operator: a credential of the operator's tenant, without limits, of no agent."""
    is_unlimited = caller.kind is CallerKind.SERVICE and caller.grants(frozenset())
    return is_unlimited and is_operator_tenant(connection, caller.tenant_id)


def is_operator_tenant(connection: Connection, tenant_id: str) -> bool:
    """Return whether a tenant, whose agents are the operator's, is the one that comes with the deployment."""
    return get_tenant(connection, tenant_id).name == DEFAULT_TENANT
