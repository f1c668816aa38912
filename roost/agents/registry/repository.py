"""The roster: who there is. Other rooms change agents' states only through `move`, which knows the transitions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sqlalchemy import Connection

from roost.agents.registry import store
from roost.agents.registry.errors import AgentLimitReached, AgentNotFound
from roost.agents.registry.model import REASON_LIMIT, TRANSITIONS, Agent, AgentProfile, AgentState
from roost.core import clock, ids
from roost.core.db import Database
from roost.core.log import redact_credentials
from roost.core.sanitize import sanitize_lines
from roost.core.seal import Sealer, UnsealFailed
from roost.core.sensitive import Sensitive
from roost.identity import tenants
from roost.identity.caller import Plan


class AgentRepository:
    def __init__(self, db: Database, sealer: Sealer, quotas: Mapping[Plan, int]) -> None:
        self._db = db
        self._sealer = sealer
        self._quotas = quotas
        self._internal: dict[str, Sensitive[str]] = {}

    async def list(self, tenant_id: str) -> Sequence[Agent]:
        """The tenant's agents, newest first."""
        return await self._db.read(lambda connection: store.list_tenant_agents(connection, tenant_id))

    async def list_all(self) -> Sequence[Agent]:
        """All agents of all tenants, those that are being deleted too."""
        return await self._db.read(store.list_all_agents)

    async def get(self, agent_id: str) -> Agent:
        """Raises AgentGone."""
        agent = await self._db.read(lambda connection: store.get_agent(connection, agent_id))
        if agent is None or agent.deleted:
            raise AgentNotFound
        return agent

    async def get_limit(self, tenant_id: str) -> int:
        """How many agents the tenant's plan allows."""
        tenant = await self._db.read(lambda connection: tenants.get_tenant(connection, tenant_id))
        return self._quotas[tenant.plan]

    def create(self, connection: Connection, tenant_id: str, profile: AgentProfile, engine: str, version: str) -> Agent:
        """Add an agent in state `starting`, inside the caller's transaction. Raises AgentLimitReached.

        Exact under any number of parallel calls: the tenant's row is held while its agents are counted.
        """
        tenant = tenants.lock_tenant(connection, tenant_id)
        if store.count_agents(connection, tenant_id) >= self._quotas[tenant.plan]:
            raise AgentLimitReached
        now = clock.utc_now()
        agent = Agent(ids.host_label(), tenant_id, profile, engine, version, AgentState.STARTING, None, False, now, now)
        internal = ids.new_token("rst_int")
        store.insert_agent(connection, agent, self._sealer.seal(internal.encode(), _place(agent.id)))
        return agent

    def lock(self, connection: Connection, agent_id: str) -> Agent:
        """The agent, locked until the transaction ends: it is not deleted meanwhile. Raises AgentGone."""
        agent = store.lock_agent(connection, agent_id)
        if agent is None or agent.deleted:
            raise AgentNotFound
        return agent

    def set_state(self, connection: Connection, agent_id: str, to: AgentState, reason: str | None = None) -> bool:
        """Set the state where the transition exists; whether it did (not for an agent that is gone or there already).

        `reason` is shown to people, and an agent may have had a hand in it: it is made plain, credentials in it are
        masked, and the last 4,000 characters are kept.
        """
        agent = store.get_agent(connection, agent_id)
        if agent is None or agent.deleted or to not in TRANSITIONS[agent.state]:
            return False
        shown = redact_credentials(sanitize_lines(reason))[-REASON_LIMIT:] if reason else None
        store.set_state(connection, agent_id, to, shown, clock.utc_now())
        return True

    def set_version(self, connection: Connection, agent_id: str, version: str) -> None:
        store.set_version(connection, agent_id, version, clock.utc_now())

    async def update_profile(self, agent_id: str, change: Callable[[AgentProfile], AgentProfile]) -> Agent:
        """What people say about an agent, said anew. Raises AgentGone and what `change` raises."""

        def rewrite(connection: Connection) -> Agent:
            agent = store.get_agent(connection, agent_id)
            if agent is None or agent.deleted:
                raise AgentNotFound
            changed = replace(agent, profile=change(agent.profile), updated_at=clock.utc_now())
            store.set_profile(connection, agent_id, changed.profile, changed.updated_at)
            return changed

        return await self._db.write(rewrite)

    def mark_deleted(self, connection: Connection, agent_id: str) -> None:
        """Hide an agent that is to be deleted. Raises AgentGone."""
        if not store.mark_deleted(connection, agent_id, clock.utc_now()):
            raise AgentNotFound

    def purge(self, connection: Connection, agent_id: str) -> None:
        """Remove the last row of an agent of which nothing else is left."""
        store.delete_agent(connection, agent_id)
        self._internal.pop(agent_id, None)

    async def get_internal_token(self, agent_id: str) -> Sensitive[str]:
        """The token that the agent's engine takes, known to us alone. Raises AgentGone."""
        if (token := self._internal.get(agent_id)) is None:
            sealed = await self._db.read(lambda connection: store.get_sealed_token(connection, agent_id))
            if sealed is None:
                raise AgentNotFound
            token = self._internal[agent_id] = self._open(sealed, agent_id)
        return token

    def _open(self, sealed: bytes, agent_id: str) -> Sensitive[str]:
        try:
            return Sensitive(self._sealer.open(sealed, _place(agent_id)).reveal().decode())
        except UnicodeDecodeError:
            raise UnsealFailed from None


def _place(agent_id: str) -> str:
    return store.ASSOCIATED_DATA.format(id=agent_id)
