"""Stored secrets: their values are encrypted, each bound to its tenant, its secret and its version."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlalchemy import Connection

from roost.agents.setup.secrets import model, store
from roost.agents.setup.secrets.model import (
    DuplicateSecretName,
    GatewayEnvironment,
    Secret,
    SecretKind,
    SecretLimitReached,
    SecretsNotConfigured,
    UnreadableSecret,
)
from roost.core import clock, ids, log
from roost.core.db import Database, DataChange, publish_on_commit, record_change
from roost.core.seal import OVERHEAD, Sealer, SealingKeyMissing, UnsealFailed
from roost.core.sensitive import Sensitive
from roost.identity.model import Tenant

TOPIC = "secrets/"
"""Begins the topic, with the agent's id, that is published when an agent's secrets change."""
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

    def replace(self, connection: Connection, old: Secret, value: Sensitive[str]) -> Secret:
        """Replace a value, and publish that to the agents that use it."""
        secret = replace(old, version=old.version + 1, updated_at=clock.utc_now())
        store.set_value(connection, secret, self._seal(secret, value))
        for agent_id in store.list_agents(connection, secret.id):
            check_agent_secrets(connection, agent_id)
            publish_on_commit(connection, TOPIC + agent_id)
        record_secret(connection, secret, "updated")
        return secret

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


class SecretEnvironment:
    """The environment that an agent's programs get from its secrets, and the values that its logs mask."""

    def __init__(self, db: Database, sealer: Sealer) -> None:
        self._db = db
        self._sealed = SealedSecrets(sealer)

    async def get_environment(self, agent_id: str) -> GatewayEnvironment:
        """Return the environment for a gateway that starts now. Raises UnreadableSecret."""
        rows = [row for row in await self._rows(agent_id) if model.reaches_agent(row.secret.name)]
        return GatewayEnvironment(
            values={row.secret.name: self._sealed.open(row) for row in rows},
            versions={row.secret.id: row.secret.version for row in rows},
        )

    async def get_values(self, agent_id: str) -> Mapping[str, Sensitive[str]]:
        """Return the values for a single command. Raises UnreadableSecret."""
        return (await self.get_environment(agent_id)).values

    async def mark_synced(self, agent_id: str, environment: GatewayEnvironment) -> None:
        """Record that the agent's gateway has started with this environment."""
        if environment.versions:
            await self._db.write(
                lambda connection: store.set_synced_versions(connection, agent_id, environment.versions)
            )

    async def get_private_values(self, agent_id: str) -> Mapping[str, Sensitive[str]]:
        """Return the secrets by name that the agent's logs mask and its snapshots leave out; variables are none."""
        found: dict[str, Sensitive[str]] = {}
        for row in await self._rows(agent_id):
            if row.secret.kind is SecretKind.SECRET:
                try:
                    found[row.secret.name] = self._sealed.open(row)
                except UnreadableSecret:  # logged already, and no process can have printed it
                    continue
        return found

    async def _rows(self, agent_id: str) -> Sequence[store.SecretRow]:
        return await self._db.read(lambda connection: store.list_agent_secrets(connection, agent_id))
