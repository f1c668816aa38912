"""Secrets and variables of a tenant, which agents have them, and what reaches an agent of them.

A tenant's row is held while its secrets or their attachments change, so that limits, names and conflicts are exact
under any number of parallel calls. Of values only a variable's are shown, to its owner; credentials of model providers
go to the model gateway. What reaches the agent itself is `delivery.py`'s.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlalchemy import Connection

from roost.agents.registry.model import AgentState
from roost.agents.registry.repository import AgentRepository
from roost.agents.secrets import model, store
from roost.agents.secrets.errors import (
    DuplicateSecretName,
    SecretAttached,
    SecretLimitReached,
    SecretNotFound,
    UnreadableSecret,
)
from roost.agents.secrets.model import AttachedSecret, ProviderKey, Secret, SecretKind, SecretWithAgents
from roost.agents.secrets.secret_sealer import SecretSealer
from roost.core import clock, ids
from roost.core.db import Database
from roost.core.seal import OVERHEAD, Sealer
from roost.core.sensitive import Sensitive
from roost.identity import tenants

Listener = Callable[[str], None]


class SecretService:
    def __init__(self, db: Database, sealer: Sealer, roster: AgentRepository) -> None:
        self._db = db
        self._sealer = SecretSealer(sealer)
        self._roster = roster
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> None:
        """`listener(agent_id)` is called right after what the agent has was attached, detached or updated."""
        self._listeners.append(listener)

    def notify_listeners(self, agent_id: str) -> None:
        """Tell the subscribers, after the commit."""
        for listener in self._listeners:
            listener(agent_id)

    async def list(self, tenant_id: str) -> tuple[Sequence[SecretWithAgents], int]:
        """The tenant's secrets by name, and how many it may have."""
        agents = {agent.id: agent.profile.name for agent in await self._roster.list(tenant_id)}
        rows, pairs, tenant = await self._db.read(
            lambda connection: (
                store.list_tenant_secrets(connection, tenant_id),
                store.list_attachments(connection, tenant_id),
                tenants.get_tenant(connection, tenant_id),
            )
        )
        having: dict[str, dict[str, str]] = {row.secret.id: {} for row in rows}
        for secret_id, agent_id in pairs:
            if agent_id in agents:
                having[secret_id][agent_id] = agents[agent_id]
        listed = [SecretWithAgents(row.secret, having[row.secret.id], self._visible_value(row)) for row in rows]
        return listed, model.SECRET_LIMIT[tenant.plan]

    async def create(self, tenant_id: str, name: str, value: str, kind: SecretKind) -> Secret:
        """Raises InvalidSecret, SecretLimitReached, DuplicateName, SecretsNotConfigured."""
        name, checked = model.validate_secret_name(name), model.validate_secret_value(value)

        def add(connection: Connection) -> Secret:
            tenant = tenants.lock_tenant(connection, tenant_id)
            taken = store.list_names(connection, tenant_id)
            if name in taken:
                raise DuplicateSecretName
            if len(taken) >= model.SECRET_LIMIT[tenant.plan]:
                raise SecretLimitReached
            now = clock.utc_now()
            secret = Secret(ids.new_id(), tenant_id, name, kind, 1, now, now)
            store.insert_secret(connection, secret, self._sealer.seal(secret, checked))
            return secret

        return await self._db.write(add)

    async def update(self, tenant_id: str, secret_id: str, value: str) -> Secret:
        """A new value. Raises InvalidSecret, UnknownSecret, SecretsNotConfigured."""
        checked = model.validate_secret_value(value)

        def change(connection: Connection) -> tuple[Secret, Sequence[str]]:
            tenants.lock_tenant(connection, tenant_id)
            old = self._get(connection, tenant_id, secret_id)
            secret = replace(old, version=old.version + 1, updated_at=clock.utc_now())
            store.set_value(connection, secret, self._sealer.seal(secret, checked))
            agents = store.list_agents(connection, secret_id)
            for agent_id in agents:
                _check_agent_secrets(connection, agent_id)
            return secret, agents

        secret, agents = await self._db.write(change)
        for agent_id in agents:
            self.notify_listeners(agent_id)
        return secret

    async def delete(self, tenant_id: str, secret_id: str) -> None:
        """Raises UnknownSecret, SecretAttached."""

        def remove(connection: Connection) -> None:
            tenants.lock_tenant(connection, tenant_id)
            self._get(connection, tenant_id, secret_id)
            if store.list_agents(connection, secret_id):
                raise SecretAttached
            store.delete_secret(connection, secret_id)

        await self._db.write(remove)

    async def list_attached(self, agent_id: str) -> Sequence[AttachedSecret]:
        """An agent's secrets by name. Raises AgentGone."""
        running = (await self._roster.get(agent_id)).state is AgentState.RUNNING
        rows = await self._db.read(lambda connection: store.list_agent_secrets(connection, agent_id))
        return [AttachedSecret(row.secret, _is_synced(row, running=running)) for row in rows]

    async def attach(self, tenant_id: str, agent_id: str, secret_ids: Sequence[str]) -> int:
        """How many were not there before. Raises UnknownSecret, ConflictingSecrets, InvalidSecret, AgentGone."""
        added = await self._db.write(
            lambda connection: self.attach_in_transaction(connection, tenant_id, agent_id, secret_ids)
        )
        self.notify_listeners(agent_id)
        return added

    def attach_in_transaction(
        self, connection: Connection, tenant_id: str, agent_id: str, secret_ids: Sequence[str]
    ) -> int:
        """`attach` inside the caller's transaction; call `changed` after the commit."""
        tenants.lock_tenant(connection, tenant_id)
        self._roster.lock(connection, agent_id)
        wanted = [self._get(connection, tenant_id, secret_id).id for secret_id in dict.fromkeys(secret_ids)]
        there = {row.secret.id for row in store.list_agent_secrets(connection, agent_id)}
        fresh = [secret_id for secret_id in wanted if secret_id not in there]
        store.insert_attachments(connection, agent_id, fresh, clock.utc_now())
        _check_agent_secrets(connection, agent_id)
        return len(fresh)

    async def detach(self, agent_id: str, secret_id: str) -> None:
        """Raises UnknownSecret when the agent does not have it."""
        if not await self._db.write(lambda connection: store.delete_attachment(connection, agent_id, secret_id)):
            raise SecretNotFound
        self.notify_listeners(agent_id)

    @staticmethod
    def detach_all(connection: Connection, agent_id: str) -> None:
        """Detach all from an agent that goes, inside the transaction that hides it."""
        store.delete_attachments(connection, agent_id)

    async def list_provider_keys(self, agent_id: str) -> Sequence[ProviderKey]:
        """The credentials of model providers that the agent has. Raises UnreadableSecret."""
        rows = await self._db.read(lambda connection: store.list_agent_secrets(connection, agent_id))
        held = [row for row in rows if not model.reaches_agent(row.secret.name)]
        return model.provider_keys({row.secret.name: self._sealer.open(row) for row in held})

    def _get(self, connection: Connection, tenant_id: str, secret_id: str) -> Secret:
        if (secret := store.get_secret(connection, tenant_id, secret_id)) is None:
            raise SecretNotFound
        return secret

    def _visible_value(self, row: store.SecretRow) -> Sensitive[str] | None:
        if row.secret.kind is SecretKind.SECRET:
            return None
        try:
            return self._sealer.open(row)
        except UnreadableSecret:  # logged; the list has to be readable, or the row could not be found and mended
            return None


def _check_agent_secrets(connection: Connection, agent_id: str) -> None:
    """Whether what an agent has now goes together. Raises ConflictingSecrets, InvalidSecret."""
    sizes = {row.secret.name: len(row.sealed) - OVERHEAD for row in store.list_agent_secrets(connection, agent_id)}
    model.check_conflicts(sizes)
    model.check_size(sizes)


def _is_synced(row: store.SecretRow, *, running: bool) -> bool:
    """What stays on the host is in use at once; the rest when a gateway runs that was started with it."""
    if not model.reaches_agent(row.secret.name):
        return True
    return running and row.synced_version == row.secret.version
