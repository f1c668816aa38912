"""Agent records. Other slices change states by `set_state` and `HostAgents.set_states`, which enforce transitions."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from math import ceil

from sqlalchemy import Connection

from roost import work
from roost.agents.registry import store
from roost.agents.registry.agent_containers import RuntimeAssignments
from roost.agents.registry.agent_ports import AgentPorts
from roost.agents.registry.errors import AgentLimitReached, AgentNotFound, AgentOnOtherHost
from roost.agents.registry.last_uses import LastUses
from roost.agents.registry.model import REASON_LIMIT, SERVER_REMOVED, TRANSITIONS, Agent, AgentProfile, AgentState
from roost.core import clock, ids
from roost.core.db import Database, DataChange, assign_tenant, record_change
from roost.core.log import redact_credentials
from roost.core.sanitize import sanitize_lines
from roost.core.seal import Sealer, UnsealFailed
from roost.core.sensitive import Sensitive
from roost.identity import tenants
from roost.identity.caller import Plan
from roost.work import JSON

TAKEN_AT_ONCE = 200
"""Agents that change their host in one transaction."""


class AgentRepository:
    """Agents of all hosts; `host_id` is the id of this one, `ports` are those of its agents, if each has its own."""

    def __init__(
        self, db: Database, sealer: Sealer, quotas: Mapping[Plan, int], host_id: str, ports: AgentPorts | None = None
    ) -> None:
        self.host_id = host_id
        self.passing = set[str]()
        """Agents that one server takes from another: both answer for them, at first that which had them."""
        self.ports = ports
        self.last_uses = LastUses(db)
        self._db = db
        self._sealer = sealer
        self._quotas = quotas
        self._tokens: dict[str, Sensitive[str]] = {}

    async def list(self, tenant_id: str) -> Sequence[Agent]:
        """List the tenant's agents, newest first."""
        return await self._db.read(lambda connection: store.list_tenant_agents(connection, tenant_id))

    async def get(self, agent_id: str) -> Agent:
        """Return an agent. Raises AgentNotFound."""
        agent = await self._db.read(lambda connection: store.get_agent(connection, agent_id))
        if agent is None or agent.deleted:
            raise AgentNotFound
        return agent

    async def get_here(self, agent_id: str) -> Agent:
        """Return an agent that this host serves. Raises AgentNotFound, AgentOnOtherHost."""
        agent = await self.get(agent_id)
        if agent.host_id != self.host_id and agent.id not in self.passing:
            raise AgentOnOtherHost(None if agent.host_id else SERVER_REMOVED, host=agent.host_id)
        return agent

    async def get_limit(self, tenant_id: str) -> tuple[Plan, int]:
        """Return the tenant's plan, and the maximum number of its agents."""
        tenant = await self._db.read(lambda connection: tenants.get_tenant(connection, tenant_id))
        return tenant.plan, self._quotas[tenant.plan]

    def create(self, connection: Connection, tenant_id: str, profile: AgentProfile, engine: str, version: str) -> Agent:
        """Insert an agent in state `starting` in the caller's transaction. Raises AgentLimitReached, NoFreePort.

        Locks the tenant's row, so that the limit is exact under parallel calls.
        """
        tenant = tenants.lock_tenant(connection, tenant_id)
        if store.count_agents(connection, tenant_id) >= self._quotas[tenant.plan]:
            raise AgentLimitReached(detail=describe_limit(tenant.plan, self._quotas[tenant.plan]))
        now = clock.utc_now()
        agent = Agent(
            id=ids.new_host_label(),
            tenant_id=tenant_id,
            profile=profile,
            engine=engine,
            engine_version=version,
            state=AgentState.STARTING,
            reason=None,
            deleted=False,
            host_id=self.host_id,
            created_at=now,
            updated_at=now,
        )
        internal = ids.new_token("rst_int")
        store.insert_agent(connection, agent, self._sealer.seal(internal.encode(), _place(agent.id)))
        if self.ports is not None:
            self.ports.assign(connection, agent.id)
        _record(connection, "created", agent)
        return agent

    def lock(self, connection: Connection, agent_id: str) -> Agent:
        """Return the agent, locked against deletion until the transaction ends. Raises AgentNotFound."""
        agent = store.lock_agent(connection, agent_id)
        if agent is None or agent.deleted:
            raise AgentNotFound
        return agent

    def set_state(self, connection: Connection, agent_id: str, to: AgentState, reason: str | None = None) -> bool:
        """Set the state if the transition is allowed, and return whether it was set.

        `reason` is shown to users and may come from the agent: it is sanitized, credentials are redacted, and the last
        4,000 characters are kept.
        """
        agent = store.get_agent(connection, agent_id)
        if agent is None or agent.deleted or to not in TRANSITIONS[agent.state]:
            return False
        shown = _show_reason(reason) if reason else None
        store.set_state(connection, agent_id, to, shown, clock.utc_now())
        _record(connection, "changed", replace(agent, state=to, reason=shown))
        return True

    def set_version(self, connection: Connection, agent_id: str, version: str) -> None:
        store.set_version(connection, agent_id, version, clock.utc_now())
        record_agent_changes(connection, [agent_id])

    async def update_profile(self, agent_id: str, change: Callable[[AgentProfile], AgentProfile]) -> Agent:
        """Replace the profile with the result of `change`. Raises AgentNotFound and the errors of `change`."""

        def update(connection: Connection) -> Agent:
            agent = store.get_agent(connection, agent_id)
            if agent is None or agent.deleted:
                raise AgentNotFound
            changed = replace(agent, profile=change(agent.profile), updated_at=clock.utc_now())
            store.set_profile(connection, agent_id, changed.profile, changed.updated_at)
            _record(connection, "changed", changed)
            return changed

        return await self._db.write(update)

    def mark_deleted(self, connection: Connection, agent_id: str) -> None:
        """Mark an agent deleted, which hides it. Raises AgentNotFound."""
        if not store.mark_deleted(connection, agent_id, clock.utc_now()):
            raise AgentNotFound
        record_change(connection, DataChange("agent", "deleted", agent_id, agent_id=agent_id))
        if self.ports is not None:
            self.ports.release(connection, agent_id)

    def purge(self, connection: Connection, agent_id: str) -> None:
        """Delete the row of an agent after all its other data; the transaction has recorded its last changes."""
        if (tenant_id := find_tenant_id(connection, agent_id)) is not None:
            assign_tenant(connection, agent_id, tenant_id)
        store.delete_agent(connection, agent_id)
        self._tokens.pop(agent_id, None)

    async def get_internal_token(self, agent_id: str) -> Sensitive[str]:
        """Return the secret token that the agent's engine accepts. Raises AgentNotFound."""
        if (token := self._tokens.get(agent_id)) is None:
            sealed = await self._db.read(lambda connection: store.get_sealed_token(connection, agent_id))
            if sealed is None:
                raise AgentNotFound
            token = self._tokens[agent_id] = self._open(sealed, agent_id)
        return token

    def _open(self, sealed: bytes, agent_id: str) -> Sensitive[str]:
        try:
            return Sensitive(self._sealer.open(sealed, _place(agent_id)).reveal().decode())
        except UnicodeDecodeError:
            raise UnsealFailed from None


def describe_limit(plan: Plan, limit: int) -> str:
    """Return what to do where a plan allows no further agent."""
    free = "or change the plan on the server's machine by `roost keys create --tenant NAME --plan paid`"
    ways = free if plan is Plan.FREE else "or raise the operator's setting quota_paid"
    return f"The plan {plan} allows {limit} agents: delete one, {ways}"


def find_tenant_id(connection: Connection, agent_id: str) -> str | None:
    """Return the tenant of an agent, even of one that is marked deleted; None if it does not exist."""
    agent = store.get_agent(connection, agent_id)
    return None if agent is None else agent.tenant_id


def enqueue_once(connection: Connection, kind: str, agent: Agent, payload: JSON = None) -> str:
    """Return the id of an equal operation of an agent that never began, or add one."""
    for waiting in work.list_waiting_operations(connection, kind, agent.id):
        if waiting.payload == payload:
            return waiting.id
    return work.add_operation(connection, kind, agent.id, payload, host=agent.host_id).id


def find_agent(connection: Connection, agent_id: str) -> Agent | None:
    """Return an agent, None if it does not exist or is marked deleted."""
    agent = store.get_agent(connection, agent_id)
    return None if agent is None or agent.deleted else agent


def set_wait_reason(connection: Connection, agent_id: str, reason: str) -> None:
    """Say what the start of an agent waits for; its next state replaces that."""
    agent = find_agent(connection, agent_id)
    if agent is not None and agent.state is AgentState.STARTING:
        store.set_state(connection, agent_id, agent.state, _show_reason(reason), clock.utc_now())
        record_agent_changes(connection, [agent_id])


def set_agent_runtime(connection: Connection, agent_id: str, runtime: str) -> None:
    store.set_runtime(connection, agent_id, runtime)
    record_agent_changes(connection, [agent_id])


def set_agent_host(connection: Connection, agent_id: str, host_id: str, runtime: str | None) -> None:
    """Give an agent to another host, in the runtime that its files have there, None for its default.

    Raises AgentNotFound.
    """
    if find_agent(connection, agent_id) is None:
        raise AgentNotFound
    store.set_host(connection, agent_id, host_id)
    store.set_runtime(connection, agent_id, runtime)
    record_agent_changes(connection, [agent_id])


def record_agent_changes(connection: Connection, agent_ids: Collection[str]) -> None:
    """Record that agents changed, as their rows are now, in the transaction of the change."""
    for agent_id in agent_ids:
        if (agent := store.get_agent(connection, agent_id)) is not None:
            _record(connection, "changed", agent)


def _record(connection: Connection, verb: str, agent: Agent) -> None:
    data = {
        "name": agent.profile.name,
        "state": agent.state.value,
        "reason": agent.reason,
        "engine": agent.engine,
        "engine_version": agent.engine_version,
    }
    record_change(connection, DataChange("agent", verb, agent.id, agent.tenant_id, agent.id, data))


def _show_reason(reason: str) -> str:
    return redact_credentials(sanitize_lines(reason))[-REASON_LIMIT:]


def _place(agent_id: str) -> str:
    return store.ASSOCIATED_DATA.format(id=agent_id)


class HostAgents:
    """The agents of one host, of all tenants."""

    def __init__(self, db: Database, host_id: str) -> None:
        self.db = db
        self.host_id = host_id

    async def list(self) -> Sequence[Agent]:
        """List the agents of this host, including those that are being deleted."""
        return await self.db.read(lambda connection: store.list_host_agents(connection, self.host_id))

    async def has(self, agent_id: str) -> bool:
        """Return whether this host has an agent, perhaps one that is being deleted."""
        agent = await self.db.read(lambda connection: store.get_agent(connection, agent_id))
        return agent is not None and agent.host_id == self.host_id

    async def record_copy(self, agent_id: str) -> None:
        """Record that this host gets a copy of the files of another host's agent, which it has to delete."""
        await self.db.write(lambda connection: store.add_copy(connection, self.host_id, agent_id))

    async def forget_copy(self, agent_id: str) -> None:
        """Forget a copy that was deleted, or whose agent belongs to this host now."""
        await self.db.write(lambda connection: store.delete_copy(connection, self.host_id, agent_id))

    async def list_copies(self) -> Sequence[str]:
        """List the ids of agents whose copies were recorded."""
        return await self.db.read(lambda connection: store.list_copies(connection, self.host_id))

    async def list_foreign(self) -> Collection[str]:
        """List the ids of the agents of other hosts."""
        return await self.db.read(lambda connection: store.list_foreign_agents(connection, self.host_id))

    async def find_foreign_host(self, agent_id: str) -> str | None:
        """Return the other host that has an agent, perhaps one that is being deleted; None if there is none."""
        host_id = await self.db.read(lambda connection: find_host_id(connection, agent_id))
        return None if host_id == self.host_id else host_id

    def lock_own(self, connection: Connection, agent_ids: Collection[str]) -> Collection[str]:
        """Return which of the agents this host has, and no other takes over until the transaction ends."""
        return store.lock_host_agents(connection, self.host_id, agent_ids)

    def set_states(self, connection: Connection, agent_ids: Collection[str], to: AgentState) -> None:
        """Set the state of those agents for which the transition is allowed, without a reason."""
        sources = [state for state, targets in TRANSITIONS.items() if to in targets]
        record_agent_changes(connection, store.set_states(connection, agent_ids, sources, to, clock.utc_now()))

    async def assign_runtimes(self, assignments: RuntimeAssignments) -> None:
        """Tell which runtime each agent has; one that never moved has that which keeps its files."""
        stored = await assignments.ask(lambda runtime: runtime.list_stored())

        def assign(connection: Connection) -> None:
            agents = [*store.list_host_agents(connection, self.host_id), *store.list_host_agents(connection, None)]
            for agent in agents:
                kept_by = [name for name, agent_ids in stored.items() if agent.id in agent_ids]
                if agent.runtime is None and kept_by:
                    store.set_runtime(connection, agent.id, kept_by[0])
                assignments.assign(agent.id, agent.runtime or (kept_by[0] if kept_by else None))

        await self.db.write(assign)

    async def adopt_unassigned(self, stored: Collection[str] | None) -> None:
        """Assign agents of no host to this one: those in `stored`, or all."""

        def adopt(connection: Connection) -> None:
            unassigned = [agent.id for agent in store.list_host_agents(connection, None)]
            wanted = [agent_id for agent_id in unassigned if stored is None or agent_id in stored]
            for agent_id in store.lock_host_agents(connection, None, wanted):
                store.set_host(connection, agent_id, self.host_id)
                record_agent_changes(connection, [agent_id])

        await self.db.write(adopt)


def abandon_host(connection: Connection, host_id: str) -> int:
    """Leave the agents of a removed host without one, and return their number; purge those marked deleted."""
    store.replace_ports(connection, host_id, ())
    agents = store.list_host_agents(connection, host_id)
    for agent in agents:
        if agent.deleted:
            store.delete_agent(connection, agent.id)
        else:
            store.set_host(connection, agent.id, None)
            store.set_state(connection, agent.id, AgentState.NOT_RUNNING, SERVER_REMOVED, clock.utc_now())
            record_agent_changes(connection, [agent.id])
    return len(agents)


def list_shared_agents(connection: Connection, host_id: str, runtime: str) -> Sequence[str]:
    """List the ids of a host's agents in a runtime that is its default."""
    return [agent.id for agent in store.list_host_agents(connection, host_id) if agent.runtime in (None, runtime)]


def take_agents(
    connection: Connection, source: str, target: str, runtime: str, takers: int, only: Collection[str] | None = None
) -> Sequence[str]:
    """Give one of `takers` hosts its share of the agents of another one in a runtime that is the default of both.

    only: the ids of those to give, in place of a share. Returns ids. The caller has locked the host `source`.
    """
    agents = list_shared_agents(connection, source, runtime)
    share = agents[: min(ceil(len(agents) / takers), TAKEN_AT_ONCE)]
    taken = share if only is None else sorted({*agents} & {*only})
    for agent_id in taken:
        store.set_host(connection, agent_id, target)
    record_agent_changes(connection, taken)
    return taken


def find_host_id(connection: Connection, agent_id: str) -> str | None:
    """Return the host of an agent, even of one that is marked deleted; None if there is none."""
    agent = store.get_agent(connection, agent_id)
    return None if agent is None else agent.host_id


def forget_host(connection: Connection, host_id: str) -> bool:
    """Forget the ports of a host without agents; return whether it has none."""
    if store.list_host_agents(connection, host_id):
        return False
    store.replace_ports(connection, host_id, ())
    return True


class AgentProfiles:
    """Changes of an agent's profile, of which its gateway reads the model at its start."""

    def __init__(self, agents: AgentRepository, restart: Callable[[str], Awaitable[object]]) -> None:
        self._agents = agents
        self._restart = restart

    async def update(
        self, agent_id: str, change: Callable[[AgentProfile], AgentProfile], *, restart: bool = False
    ) -> Agent:
        """Change the profile and return the agent; another model, or `restart`, restarts a gateway that runs.

        Raises AgentNotFound, the errors of `change`, and those of a restart.
        """
        before = await self._agents.get(agent_id)
        after = await self._agents.update_profile(agent_id, change)
        if (restart or after.profile.model != before.profile.model) and after.state is AgentState.RUNNING:
            await self._restart(agent_id)
        return await self._agents.get(agent_id)
