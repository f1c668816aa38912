"""Secrets and variables of a tenant, and the agents that they are attached to.

The tenant's row is locked while its secrets or their attachments change, so that limits, names and conflicts are exact
under any number of parallel calls. Owners can read the values of variables only; credentials of model providers go to
the model gateway. `SecretEnvironment` delivers values to the agent itself.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from sqlalchemy import Connection

from roost.agents.registry.model import AgentState
from roost.agents.registry.repository import AgentRepository
from roost.agents.setup.secrets import model, store
from roost.agents.setup.secrets.model import (
    AttachedSecret,
    Secret,
    SecretAttached,
    SecretKind,
    SecretNotFound,
    SecretWithAgents,
    UnreadableSecret,
)
from roost.agents.setup.secrets.providers import PROVIDER_OF
from roost.agents.setup.secrets.sealed_secrets import (
    TOPIC,
    SealedSecrets,
    SecretEnvironment,
    check_agent_secrets,
    record_secret,
)
from roost.core import clock
from roost.core.db import ANY_TOPIC, Database, publish_on_commit
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.identity import tenants

Listener = Callable[[str | None], None]


class KeyTrial(Protocol):
    async def check_replacement(self, agent_id: str, name: str, key: Sensitive[str]) -> None:
        """Raise a Problem if the provider refuses a new key, for the secret `name` that an agent uses."""


class SecretService:
    def __init__(self, db: Database, sealer: Sealer, agents: AgentRepository, trial: KeyTrial | None = None) -> None:
        """`trial` tries a key of a model provider before `update` replaces one that an agent uses."""
        self._db = db
        self._sealed = SealedSecrets(sealer)
        self.environment = SecretEnvironment(db, sealer)
        self._agents = agents
        self._listeners: list[Listener] = []
        self._trial = trial
        db.subscribe(self._notify_listeners)

    def subscribe(self, listener: Listener) -> None:
        """Call `listener(agent_id)` after each change of the agent's secrets by any server.

        With None, those of any agents may have changed.
        """
        self._listeners.append(listener)

    async def list(self, tenant_id: str) -> tuple[Sequence[SecretWithAgents], int]:
        """List the tenant's secrets by name, and return its limit."""
        agents = {agent.id: agent.profile.name for agent in await self._agents.list(tenant_id)}
        rows, pairs, tenant = await self._db.read(
            lambda connection: (
                store.list_tenant_secrets(connection, tenant_id),
                store.list_attachments(connection, tenant_id),
                tenants.get_tenant(connection, tenant_id),
            )
        )
        names: dict[str, dict[str, str]] = {row.secret.id: {} for row in rows}
        for secret_id, agent_id in pairs:
            if agent_id in agents:
                names[secret_id][agent_id] = agents[agent_id]
        secrets = [SecretWithAgents(row.secret, names[row.secret.id], self._visible_value(row)) for row in rows]
        return secrets, model.SECRET_LIMIT[tenant.plan]

    async def create(self, tenant_id: str, name: str, value: str, kind: SecretKind) -> Secret:
        """Create a secret. Raises InvalidSecret, SecretLimitReached, DuplicateSecretName, SecretsNotConfigured."""
        name, checked = model.validate_secret_name(name), model.validate_secret_value(value)

        def add(connection: Connection) -> Secret:
            tenant = tenants.lock_tenant(connection, tenant_id)
            return self._sealed.insert(connection, tenant, name, checked, kind)

        return await self._db.write(add)

    async def update(self, tenant_id: str, secret_id: str, value: str) -> Secret:
        """Replace the value, a key that an agent uses only if its provider does not refuse the new one.

        Raises InvalidSecret, SecretNotFound, SecretsNotConfigured, and the error of the trial.
        """
        checked = model.validate_secret_value(value)
        await self._try_replacement(tenant_id, secret_id, checked)

        def change(connection: Connection) -> Secret:
            tenants.lock_tenant(connection, tenant_id)
            return self._sealed.replace(connection, self._get(connection, tenant_id, secret_id), checked)

        return await self._db.write(change)

    async def delete(self, tenant_id: str, secret_id: str) -> None:
        """Delete a secret. Raises SecretNotFound, SecretAttached."""

        def remove(connection: Connection) -> None:
            tenants.lock_tenant(connection, tenant_id)
            secret = self._get(connection, tenant_id, secret_id)
            if store.list_agents(connection, secret_id):
                raise SecretAttached
            store.delete_secret(connection, secret_id)
            record_secret(connection, secret, "deleted")

        await self._db.write(remove)

    async def list_attached(self, agent_id: str) -> Sequence[AttachedSecret]:
        """List an agent's secrets by name. Raises AgentNotFound."""
        running = (await self._agents.get(agent_id)).state is AgentState.RUNNING
        rows = await self._db.read(lambda connection: store.list_agent_secrets(connection, agent_id))
        return [AttachedSecret(row.secret, _is_synced(row, running=running)) for row in rows]

    async def attach(self, tenant_id: str, agent_id: str, secret_ids: Sequence[str]) -> tuple[int, Sequence[str]]:
        """Attach secrets; return the number of new attachments, and what to know of their names.

        Raises SecretNotFound, ConflictingSecrets, InvalidSecret, AgentNotFound.
        """
        added = await self._db.write(
            lambda connection: self.attach_in_transaction(connection, tenant_id, agent_id, secret_ids)
        )
        return len(added), [warning for one in added if (warning := model.warn_of_name(one.name))]

    def attach_in_transaction(
        self, connection: Connection, tenant_id: str, agent_id: str, secret_ids: Sequence[str]
    ) -> Sequence[Secret]:
        """Attach secrets in the caller's transaction and return the new ones."""
        publish_on_commit(connection, TOPIC + agent_id)
        tenants.lock_tenant(connection, tenant_id)
        self._agents.lock(connection, agent_id)
        requested = [self._get(connection, tenant_id, secret_id) for secret_id in dict.fromkeys(secret_ids)]
        attached = {row.secret.id for row in store.list_agent_secrets(connection, agent_id)}
        new = [secret for secret in requested if secret.id not in attached]
        store.insert_attachments(connection, agent_id, [secret.id for secret in new], clock.utc_now())
        check_agent_secrets(connection, agent_id)
        for secret in new:
            record_secret(connection, secret, "attached", agent_id)
        return new

    async def detach(self, agent_id: str, secret_id: str) -> None:
        """Detach a secret. Raises SecretNotFound if it is not attached to the agent."""

        def remove(connection: Connection) -> None:
            attached = {row.secret.id: row.secret for row in store.list_agent_secrets(connection, agent_id)}
            if not store.delete_attachment(connection, agent_id, secret_id):
                raise SecretNotFound
            record_secret(connection, attached[secret_id], "detached", agent_id)
            publish_on_commit(connection, TOPIC + agent_id)

        await self._db.write(remove)

    @staticmethod
    def detach_all(connection: Connection, agent_id: str) -> None:
        """Detach all secrets of an agent, in the transaction that marks the agent deleted."""
        store.delete_attachments(connection, agent_id)

    def _notify_listeners(self, topics: frozenset[str]) -> None:
        for topic in topics:
            if topic == ANY_TOPIC or topic.startswith(TOPIC):
                for listener in self._listeners:
                    listener(None if topic == ANY_TOPIC else topic.removeprefix(TOPIC))

    async def _try_replacement(self, tenant_id: str, secret_id: str, value: Sensitive[str]) -> None:
        """Try a new key of a model provider with an agent that uses the present one."""

        def find_use(connection: Connection) -> tuple[str, Sequence[str]]:
            return self._get(connection, tenant_id, secret_id).name, store.list_agents(connection, secret_id)

        name, agents = await self._db.read(find_use)
        if self._trial is not None and agents and (provider := PROVIDER_OF.get(name)) and provider.models:
            await self._trial.check_replacement(agents[0], name, value)

    def _get(self, connection: Connection, tenant_id: str, secret_id: str) -> Secret:
        if (secret := store.get_secret(connection, tenant_id, secret_id)) is None:
            raise SecretNotFound
        return secret

    def _visible_value(self, row: store.SecretRow) -> Sensitive[str] | None:
        if row.secret.kind is SecretKind.SECRET:
            return None
        try:
            return self._sealed.open(row)
        except UnreadableSecret:  # logged; the list stays readable, so that the owner can find and replace the value
            return None


def _is_synced(row: store.SecretRow, *, running: bool) -> bool:
    """Return whether the current value is in use: on the host at once, in the agent after a start of its gateway."""
    if not model.reaches_agent(row.secret.name):
        return True
    return running and row.synced_version == row.secret.version
