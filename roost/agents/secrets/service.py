"""Secrets and variables of a tenant, and the agents that they are attached to.

The tenant's row is locked while its secrets or their attachments change, so that limits, names and conflicts are exact
under any number of parallel calls. Owners can read the values of variables only; credentials of model providers go to
the model gateway. `environment.py` delivers values to the agent itself.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from sqlalchemy import Connection

from roost.agents.registry.model import AgentState
from roost.agents.registry.repository import AgentRepository, find_agent
from roost.agents.secrets import model, store
from roost.agents.secrets.errors import (
    DuplicateSecretName,
    InvalidSecret,
    SecretAttached,
    SecretLimitReached,
    SecretNotFound,
    SecretShared,
    UnreadableSecret,
)
from roost.agents.secrets.model import AttachedSecret, ProviderKey, Secret, SecretKind, SecretWithAgents
from roost.agents.secrets.providers import PROVIDER_OF, PROVIDERS
from roost.agents.secrets.secret_sealer import SecretSealer
from roost.core import clock, ids
from roost.core.db import Database, DataChange, record_change
from roost.core.seal import OVERHEAD, Sealer
from roost.core.sensitive import Sensitive
from roost.identity import tenants
from roost.identity.model import Tenant

Listener = Callable[[str], None]
KeyTrial = Callable[[str, ProviderKey], Awaitable[None]]
"""Raises a Problem if the agent, by its id, could not use a key of a model provider."""


class SecretService:
    def __init__(self, db: Database, sealer: Sealer, agents: AgentRepository) -> None:
        self._db = db
        self._sealer = SecretSealer(sealer)
        self._agents = agents
        self._listeners: list[Listener] = []
        self._try_key: KeyTrial | None = None

    def try_keys_by(self, trial: KeyTrial) -> None:
        """Let `trial` try a key of a model provider before `update` replaces one that an agent uses."""
        self._try_key = trial

    def subscribe(self, listener: Listener) -> None:
        """Call `listener(agent_id)` after each change of the agent's secrets."""
        self._listeners.append(listener)

    def notify_listeners(self, agent_id: str) -> None:
        """Notify the subscribers; call it after the commit."""
        for listener in self._listeners:
            listener(agent_id)

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
            return self._insert(connection, tenant, name, checked, kind)

        return await self._db.write(add)

    async def update(self, tenant_id: str, secret_id: str, value: str) -> Secret:
        """Replace the value, a key that an agent uses only if its provider does not refuse the new one.

        Raises InvalidSecret, SecretNotFound, SecretsNotConfigured, and the error of the trial.
        """
        checked = model.validate_secret_value(value)
        if (used := await self._db.read(lambda c: self._find_use(c, tenant_id, secret_id))) and self._try_key:
            agent_id, key = used
            await self._try_key(agent_id, replace(key, value=checked))

        def change(connection: Connection) -> tuple[Secret, Sequence[str]]:
            tenants.lock_tenant(connection, tenant_id)
            return self._replace(connection, self._get(connection, tenant_id, secret_id), checked)

        secret, agents = await self._db.write(change)
        for agent_id in agents:
            self.notify_listeners(agent_id)
        return secret

    async def delete(self, tenant_id: str, secret_id: str) -> None:
        """Delete a secret. Raises SecretNotFound, SecretAttached."""

        def remove(connection: Connection) -> None:
            tenants.lock_tenant(connection, tenant_id)
            secret = self._get(connection, tenant_id, secret_id)
            if store.list_agents(connection, secret_id):
                raise SecretAttached
            store.delete_secret(connection, secret_id)
            _record(connection, secret, "deleted")

        await self._db.write(remove)

    async def list_attached(self, agent_id: str) -> Sequence[AttachedSecret]:
        """List an agent's secrets by name. Raises AgentNotFound."""
        running = (await self._agents.get(agent_id)).state is AgentState.RUNNING
        rows = await self._db.read(lambda connection: store.list_agent_secrets(connection, agent_id))
        return [AttachedSecret(row.secret, _is_synced(row, running=running)) for row in rows]

    async def attach(self, tenant_id: str, agent_id: str, secret_ids: Sequence[str]) -> int:
        """Attach secrets and return the number of new attachments.

        Raises SecretNotFound, ConflictingSecrets, InvalidSecret, AgentNotFound.
        """
        added = await self._db.write(
            lambda connection: self.attach_in_transaction(connection, tenant_id, agent_id, secret_ids)
        )
        self.notify_listeners(agent_id)
        return added

    def attach_in_transaction(
        self, connection: Connection, tenant_id: str, agent_id: str, secret_ids: Sequence[str]
    ) -> int:
        """Attach secrets in the caller's transaction; call `notify_listeners` after the commit."""
        tenants.lock_tenant(connection, tenant_id)
        self._agents.lock(connection, agent_id)
        requested = [self._get(connection, tenant_id, secret_id) for secret_id in dict.fromkeys(secret_ids)]
        attached = {row.secret.id for row in store.list_agent_secrets(connection, agent_id)}
        new = [secret for secret in requested if secret.id not in attached]
        store.insert_attachments(connection, agent_id, [secret.id for secret in new], clock.utc_now())
        _check_agent_secrets(connection, agent_id)
        for secret in new:
            _record(connection, secret, "attached", agent_id)
        return len(new)

    async def detach(self, agent_id: str, secret_id: str) -> None:
        """Detach a secret. Raises SecretNotFound if it is not attached to the agent."""

        def remove(connection: Connection) -> None:
            attached = {row.secret.id: row.secret for row in store.list_agent_secrets(connection, agent_id)}
            if not store.delete_attachment(connection, agent_id, secret_id):
                raise SecretNotFound
            _record(connection, attached[secret_id], "detached", agent_id)

        await self._db.write(remove)
        self.notify_listeners(agent_id)

    @staticmethod
    def detach_all(connection: Connection, agent_id: str) -> None:
        """Detach all secrets of an agent, in the transaction that marks the agent deleted."""
        store.delete_attachments(connection, agent_id)

    async def list_provider_keys(self, agent_id: str) -> Sequence[ProviderKey]:
        """List the agent's credentials of model providers. Raises UnreadableSecret."""
        rows = await self._db.read(lambda connection: store.list_agent_secrets(connection, agent_id))
        host_only = [row for row in rows if not model.reaches_agent(row.secret.name)]
        return model.provider_keys({row.secret.name: self._sealer.open(row) for row in host_only})

    async def find_provider_key(
        self, tenant_id: str, agent_id: str, provider: str, replace_for: frozenset[str]
    ) -> ProviderKey:
        """Return where the agent's key of a model provider belongs: the name of the secret, and its base URL.

        Raises AgentNotFound, InvalidSecret for an unknown provider, SecretShared if agents that are not in
        `replace_for` use the key that is there.
        """
        await self._agents.get(agent_id)

        def find(connection: Connection) -> ProviderKey:
            key = self._provider_key(connection, agent_id, provider)
            self._require_unshared(connection, tenant_id, agent_id, key.name, replace_for)
            return key

        return await self._db.read(find)

    async def put_provider_key(
        self, tenant_id: str, agent_id: str, key: ProviderKey, replace_for: frozenset[str]
    ) -> None:
        """Create or replace the secret of a key, and attach it to the agent, all or nothing.

        Raises SecretShared, InvalidSecret, SecretLimitReached, ConflictingSecrets, AgentNotFound.
        """
        checked = model.validate_secret_value(key.value.reveal())

        def put(connection: Connection) -> Sequence[str]:
            tenant = tenants.lock_tenant(connection, tenant_id)
            present = self._require_unshared(connection, tenant_id, agent_id, key.name, replace_for)
            if present is None:
                secret = self._insert(connection, tenant, key.name, checked, SecretKind.SECRET)
                agents: Sequence[str] = ()
            else:
                secret, agents = self._replace(connection, present, checked)
            self.attach_in_transaction(connection, tenant_id, agent_id, [secret.id])
            return agents

        for changed in {agent_id, *await self._db.write(put)}:
            self.notify_listeners(changed)

    def _insert(
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
        _record(connection, secret, "created")
        return secret

    def _replace(self, connection: Connection, old: Secret, value: Sensitive[str]) -> tuple[Secret, Sequence[str]]:
        """Replace a value; return the secret and the agents that use it."""
        secret = replace(old, version=old.version + 1, updated_at=clock.utc_now())
        store.set_value(connection, secret, self._sealer.seal(secret, value))
        agents = store.list_agents(connection, secret.id)
        for agent_id in agents:
            _check_agent_secrets(connection, agent_id)
        _record(connection, secret, "updated")
        return secret, agents

    def _find_use(self, connection: Connection, tenant_id: str, secret_id: str) -> tuple[str, ProviderKey] | None:
        """Return an agent that uses the secret as its key of a model provider, and the key; None if none does."""
        secret = self._get(connection, tenant_id, secret_id)
        provider = PROVIDER_OF.get(secret.name)
        agents = store.list_agents(connection, secret_id)
        if provider is None or not provider.models or not agents:
            return None
        key = self._provider_key(connection, agents[0], provider.id)
        return (agents[0], key) if key.name == secret.name else None

    def _provider_key(self, connection: Connection, agent_id: str, provider: str) -> ProviderKey:
        """Return the agent's key of a provider, empty if it has none, with its usual name and the agent's base URL."""
        known = next((one for one in PROVIDERS if one.id == provider and one.models), None)
        if known is None:
            raise InvalidSecret(f"{provider} is no known model provider")
        rows = {row.secret.name: row for row in store.list_agent_secrets(connection, agent_id)}
        attached = [name for name in known.names if name in rows]
        usual = next((name for name in known.names if name.endswith("_API_KEY")), known.names[0])
        base_url = next((self._sealer.open(rows[name]).reveal() for name in known.base_urls if name in rows), None)
        return ProviderKey(provider, attached[0] if attached else usual, Sensitive(""), base_url)

    def _require_unshared(
        self, connection: Connection, tenant_id: str, agent_id: str, name: str, replace_for: frozenset[str]
    ) -> Secret | None:
        """Return the tenant's secret of that name, if there is one. Raises SecretShared."""
        secret = store.find_secret(connection, tenant_id, name)
        others = set(store.list_agents(connection, secret.id)) - {agent_id} - replace_for if secret else set[str]()
        if others:
            found = [find_agent(connection, one) for one in sorted(others)[:10]]
            names = ", ".join(sorted(one.profile.name for one in found if one is not None))
            raise SecretShared(f"{name} is also the key of {names}: name in replaceFor the agents that may change")
        return secret

    def _get(self, connection: Connection, tenant_id: str, secret_id: str) -> Secret:
        if (secret := store.get_secret(connection, tenant_id, secret_id)) is None:
            raise SecretNotFound
        return secret

    def _visible_value(self, row: store.SecretRow) -> Sensitive[str] | None:
        if row.secret.kind is SecretKind.SECRET:
            return None
        try:
            return self._sealer.open(row)
        except UnreadableSecret:  # logged; the list stays readable, so that the owner can find and replace the value
            return None


def _record(connection: Connection, secret: Secret, action: str, agent_id: str | None = None) -> None:
    data = {"name": secret.name, "action": action}
    record_change(connection, DataChange("secret", "changed", secret.id, secret.tenant_id, agent_id, data))


def _check_agent_secrets(connection: Connection, agent_id: str) -> None:
    """Check an agent's secrets against each other. Raises ConflictingSecrets, InvalidSecret."""
    sizes = {row.secret.name: len(row.sealed) - OVERHEAD for row in store.list_agent_secrets(connection, agent_id)}
    model.check_conflicts(sizes)
    model.check_size(sizes)


def _is_synced(row: store.SecretRow, *, running: bool) -> bool:
    """Return whether the current value is in use: on the host at once, in the agent after a start of its gateway."""
    if not model.reaches_agent(row.secret.name):
        return True
    return running and row.synced_version == row.secret.version
