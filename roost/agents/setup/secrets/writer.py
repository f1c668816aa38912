"""Writes of secrets within a transaction that has locked the tenant."""

import dataclasses
from collections.abc import Sequence

from sqlalchemy import Connection

from roost.agents.setup.secrets import model, store
from roost.agents.setup.secrets.model import DuplicateSecretName, Secret, SecretKind, SecretLimitReached
from roost.agents.setup.secrets.secret_sealer import SecretSealer
from roost.core import clock, ids
from roost.core.db import DataChange, record_change
from roost.core.seal import OVERHEAD
from roost.core.sensitive import Sensitive
from roost.identity.model import Tenant


class SecretWriter:
    def __init__(self, sealer: SecretSealer) -> None:
        self._sealer = sealer

    def insert(
        self, connection: Connection, tenant: Tenant, name: str, value: Sensitive[str], kind: SecretKind
    ) -> Secret:
        taken = store.list_names(connection, tenant.id)
        if name in taken:
            raise DuplicateSecretName
        if len(taken) >= model.SECRET_LIMIT[tenant.plan]:
            raise SecretLimitReached
        now = clock.utc_now()
        secret = Secret(ids.new_id(), tenant.id, name, kind, 1, now, now)
        store.insert_secret(connection, secret, self._sealer.seal(secret, value))
        record_secret(connection, secret, "created")
        return secret

    def replace(self, connection: Connection, old: Secret, value: Sensitive[str]) -> tuple[Secret, Sequence[str]]:
        """Replace a value; return the secret and the agents that use it."""
        secret = dataclasses.replace(old, version=old.version + 1, updated_at=clock.utc_now())
        store.set_value(connection, secret, self._sealer.seal(secret, value))
        agents = store.list_agents(connection, secret.id)
        for agent_id in agents:
            check_agent_secrets(connection, agent_id)
        record_secret(connection, secret, "updated")
        return secret, agents


def record_secret(connection: Connection, secret: Secret, action: str, agent_id: str | None = None) -> None:
    data = {"name": secret.name, "action": action}
    record_change(connection, DataChange("secret", "changed", secret.id, secret.tenant_id, agent_id, data))


def check_agent_secrets(connection: Connection, agent_id: str) -> None:
    """Check an agent's secrets against each other. Raises ConflictingSecrets, InvalidSecret."""
    sizes = {row.secret.name: len(row.sealed) - OVERHEAD for row in store.list_agent_secrets(connection, agent_id)}
    model.check_conflicts(sizes)
    model.check_size(sizes)
