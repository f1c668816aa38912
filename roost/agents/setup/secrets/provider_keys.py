"""Agents' keys of model providers, which stay on the host."""

from collections.abc import Sequence

from sqlalchemy import Connection

from roost.agents.registry.repository import AgentRepository, find_agent
from roost.agents.setup.secrets import model, store
from roost.agents.setup.secrets.model import InvalidSecret, ProviderKey, Secret, SecretKind, SecretShared
from roost.agents.setup.secrets.providers import PROVIDERS
from roost.agents.setup.secrets.sealed_secrets import SealedSecrets
from roost.agents.setup.secrets.service import SecretService
from roost.core.db import Database
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.identity import tenants


class ProviderKeys:
    def __init__(self, db: Database, sealer: Sealer) -> None:
        self._db = db
        self._sealed = SealedSecrets(sealer)

    async def list(self, agent_id: str) -> Sequence[ProviderKey]:
        """List the agent's credentials of model providers. Raises UnreadableSecret."""
        rows = await self._db.read(lambda connection: store.list_agent_secrets(connection, agent_id))
        host_only = [row for row in rows if not model.reaches_agent(row.secret.name)]
        return model.provider_keys({row.secret.name: self._sealed.open(row) for row in host_only})


class ProviderKeyService:
    """Creates and replaces keys among the secrets."""

    def __init__(self, db: Database, sealer: Sealer, agents: AgentRepository, secrets: SecretService) -> None:
        self._db = db
        self._sealed = SealedSecrets(sealer)
        self._agents = agents
        self._secrets = secrets

    async def find(self, tenant_id: str, agent_id: str, provider: str, replace_for: frozenset[str]) -> ProviderKey:
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

    async def put(self, tenant_id: str, agent_id: str, key: ProviderKey, replace_for: frozenset[str]) -> None:
        """Create or replace the secret of a key, and attach it to the agent, all or nothing.

        Raises SecretShared, InvalidSecret, SecretLimitReached, ConflictingSecrets, AgentNotFound.
        """
        checked = model.validate_secret_value(key.value.reveal())

        def put(connection: Connection) -> None:
            tenant = tenants.lock_tenant(connection, tenant_id)
            present = self._require_unshared(connection, tenant_id, agent_id, key.name, replace_for)
            if present is None:
                secret = self._sealed.insert(connection, tenant, key.name, checked, SecretKind.SECRET)
            else:
                secret = self._sealed.replace(connection, present, checked)
            self._secrets.attach_in_transaction(connection, tenant_id, agent_id, [secret.id])

        await self._db.write(put)

    def _provider_key(self, connection: Connection, agent_id: str, provider: str) -> ProviderKey:
        """Return the agent's key of a provider, empty if it has none, with its usual name and the agent's base URL."""
        known = next((one for one in PROVIDERS if one.id == provider and one.models), None)
        if known is None:
            raise InvalidSecret(f"{provider} is no known model provider")
        rows = {row.secret.name: row for row in store.list_agent_secrets(connection, agent_id)}
        attached = [name for name in known.names if name in rows]
        base_url = next((self._sealed.open(rows[name]).reveal() for name in known.base_urls if name in rows), None)
        return ProviderKey(provider, attached[0] if attached else known.usual_name, Sensitive(""), base_url)

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
