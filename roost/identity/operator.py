"""The operator of a deployment: the owner of the tenant that comes with it (decision 0011)."""

from sqlalchemy import Connection

from roost.identity import tenants
from roost.identity.caller import Caller, CallerKind
from roost.identity.model import DEFAULT_TENANT


def is_operator(connection: Connection, caller: Caller) -> bool:
    """Return whether a caller is the operator: a credential of the operator's tenant, without limits, of no agent."""
    is_unlimited = caller.kind is CallerKind.SERVICE and caller.grants(frozenset())
    return is_unlimited and is_operator_tenant(connection, caller.tenant_id)


def is_operator_tenant(connection: Connection, tenant_id: str) -> bool:
    """Return whether a tenant, whose agents are the operator's, is the one that comes with the deployment."""
    return tenants.get_tenant(connection, tenant_id).name == DEFAULT_TENANT
