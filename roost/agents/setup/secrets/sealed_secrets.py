"""Stored secrets: their values are encrypted, each bound to its tenant, its secret and its version."""

from collections.abc import Sequence
from dataclasses import replace

from sqlalchemy import Connection

from roost.agents.setup.secrets import model, store
from roost.agents.setup.secrets.model import (
    DuplicateSecretName,
    Secret,
    SecretKind,
    SecretLimitReached,
    SecretsNotConfigured,
    UnreadableSecret,
)
from roost.core import clock, ids, log
from roost.core.db import DataChange, record_change
from roost.core.seal import OVERHEAD, Sealer, SealingKeyMissing, UnsealFailed
from roost.core.sensitive import Sensitive
from roost.identity.model import Tenant

_log = log.get_logger("secrets")


class SealedSecrets:
    """Reads and writes secrets; writes are within a transaction that has locked the tenant."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    def open(self, row: store.SecretRow) -> Sensitive[str]:
        """Decrypt a value. Raises UnreadableSecret and logs it, since the database may have been tampered with."""
        try:
            return Sensitive(self._sealer.open(row.sealed, _associated_data(row.secret)).reveal().decode())
        except (UnsealFailed, UnicodeDecodeError):
            _log.error("secret.unseal_failed", secret=row.secret.id, tenant=row.secret.tenant_id)
            raise UnreadableSecret(f"The secret {row.secret.name} could not be opened; set its value again") from None

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
        store.insert_secret(connection, secret, self._seal(secret, value))
        record_secret(connection, secret, "created")
        return secret

    def replace(self, connection: Connection, old: Secret, value: Sensitive[str]) -> tuple[Secret, Sequence[str]]:
        """Replace a value; return the secret and the agents that use it."""
        secret = replace(old, version=old.version + 1, updated_at=clock.utc_now())
        store.set_value(connection, secret, self._seal(secret, value))
        agents = store.list_agents(connection, secret.id)
        for agent_id in agents:
            check_agent_secrets(connection, agent_id)
        record_secret(connection, secret, "updated")
        return secret, agents

    def _seal(self, secret: Secret, value: Sensitive[str]) -> bytes:
        """Encrypt a value. Raises SecretsNotConfigured."""
        try:
            return self._sealer.seal(value.reveal().encode(), _associated_data(secret))
        except SealingKeyMissing:
            raise SecretsNotConfigured from None


def record_secret(connection: Connection, secret: Secret, action: str, agent_id: str | None = None) -> None:
    data = {"name": secret.name, "action": action}
    record_change(connection, DataChange("secret", "changed", secret.id, secret.tenant_id, agent_id, data))


def check_agent_secrets(connection: Connection, agent_id: str) -> None:
    """Check an agent's secrets against each other. Raises ConflictingSecrets, InvalidSecret."""
    sizes = {row.secret.name: len(row.sealed) - OVERHEAD for row in store.list_agent_secrets(connection, agent_id)}
    model.check_conflicts(sizes)
    model.check_size(sizes)


def _associated_data(secret: Secret) -> str:
    return store.ASSOCIATED_DATA.format(tenant_id=secret.tenant_id, id=secret.id, version=secret.version)
