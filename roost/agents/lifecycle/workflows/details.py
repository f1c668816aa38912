"""Records of agents as a caller may see them, with their URLs and the current state of their gateways."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from roost.agents.library.instances.schemas import AgentTemplateRecord, MissingItemRecord
from roost.agents.library.instances.service import TemplateInstanceService
from roost.agents.library.skills.attachments import AgentSkillService
from roost.agents.library.skills.schemas import AttachedSkillRecord
from roost.agents.lifecycle.workflows import schemas
from roost.agents.lifecycle.workflows.gateway import Origin
from roost.agents.lifecycle.workflows.model import AgentStartFailed
from roost.agents.network.routes.schemas import RouteRecord
from roost.agents.network.routes.service import RouteService
from roost.agents.registry.agent_runtimes import GATEWAY_PROCESS, AgentRuntimes
from roost.agents.registry.model import Agent, AgentState
from roost.agents.registry.schemas import FaultRecord
from roost.agents.setup.secrets.schemas import AgentSecretRecord
from roost.agents.setup.secrets.service import SecretService
from roost.agents.workspace.scripts.schemas import ScriptListRecord
from roost.agents.workspace.scripts.service import ScriptService
from roost.agents.workspace.snapshots.schemas import SnapshotRecord
from roost.agents.workspace.snapshots.service import SnapshotService
from roost.core.db import Database
from roost.core.problem import Problem
from roost.core.sensitive import Sensitive
from roost.identity.caller import Caller, CallerKind
from roost.identity.gateway_tokens import TokenReads
from roost.work.faults import list_faults


@dataclass(frozen=True)
class AgentDetails:
    _db: Database
    _runtimes: AgentRuntimes
    _tokens: TokenReads
    _secrets: SecretService
    _origin: Origin
    _scripts: ScriptService
    _snapshots: SnapshotService
    _skills: AgentSkillService
    _instances: TemplateInstanceService
    _routes: RouteService

    async def encode_list(self, caller: Caller) -> str:
        """Return the JSON of an AgentList of the caller's tenant."""
        agents = await self._runtimes.agents.list(caller.tenant_id)
        last_uses = await self._runtimes.agents.last_uses.list(caller.tenant_id)
        _, limit = await self._runtimes.agents.get_limit(caller.tenant_id)
        return schemas.encode_agent_list(((agent, self._origin(agent.id)) for agent in agents), last_uses, limit)

    async def list_memory(self, caller: Caller) -> schemas.AgentMemoryList:
        """Return the memory of the caller's agents that run on this host."""
        agents = await self._runtimes.agents.list(caller.tenant_id)
        used = await self._runtimes.runtime.read_memory([agent.id for agent in agents])
        return schemas.AgentMemoryList(
            agents=[schemas.AgentMemoryRecord(agent_id=agent_id, memory_bytes=size) for agent_id, size in used.items()]
        )

    async def get_detail(self, caller: Caller, agent_id: str) -> schemas.AgentDetail:
        """Return all about an agent. Raises AgentNotFound."""
        agent = await self._runtimes.agents.get(agent_id)
        status, pid = await self.get_process(agent)
        lifecycle = ScriptListRecord.from_scripts(await self._scripts.list(agent_id))
        record = await self._record(caller, agent, lifecycle)
        secrets = [AgentSecretRecord.from_attached(secret) for secret in await self._secrets.list_attached(agent_id)]
        snapshots, _ = await self._snapshots.list_page(agent_id)
        template, missing = await self._describe_template(agent)
        faults = await self._db.read(lambda connection: list_faults(connection, agent_id))
        return schemas.AgentDetail(
            agent=record,
            process_status=status,
            process_id=pid,
            lifecycle=lifecycle,
            skills=[AttachedSkillRecord.from_attached(agent_id, one) for one in await self._skills.list(agent_id)],
            secrets=secrets,
            snapshots=[SnapshotRecord.from_snapshot(snapshot) for snapshot in snapshots],
            template=template,
            missing=missing,
            faults=[FaultRecord(**vars(fault)) for fault in faults],
            port_forwarding=[RouteRecord.from_route(route) for route in await self._routes.list(agent_id)],
        )

    async def get_record(self, caller: Caller, agent: Agent) -> schemas.AgentRecord:
        return await self._record(caller, agent, ScriptListRecord.from_scripts(await self._scripts.list(agent.id)))

    async def _record(self, caller: Caller, agent: Agent, lifecycle: ScriptListRecord) -> schemas.AgentRecord:
        token, last_used_at = await self._token(caller, agent.id), await self._runtimes.agents.last_uses.get(agent.id)
        return schemas.agent_record(agent, self._origin(agent.id), token, lifecycle, last_used_at)

    async def get_created(self, caller: Caller, agent: Agent) -> schemas.CreateAgentResponse:
        """Return the response about a new agent."""
        template, missing = await self._describe_template(agent)
        record = await self.get_record(caller, agent)
        return schemas.CreateAgentResponse(agent=record, template=template, missing=missing)

    async def _describe_template(self, agent: Agent) -> tuple[AgentTemplateRecord | None, Sequence[MissingItemRecord]]:
        """Return the template that the agent was made from, and what the agent lacks of it."""
        skills = await self._skills.list(agent.id)
        references = {name for one in skills for name in (one.version.cid, one.skill.slug) if name}
        found = await self._instances.describe(agent, references)
        if found is None:
            return None, ()
        record = AgentTemplateRecord.from_instance(found.instance, found.latest_version)
        return record, [MissingItemRecord.from_item(item) for item in found.missing]

    @asynccontextmanager
    async def describe_failure(self, caller: Caller) -> AsyncGenerator[None]:
        """Add the agent that did not start to the error body."""
        try:
            yield
        except AgentStartFailed as failure:
            record = await self.get_record(caller, failure.agent)
            failure.extra["agent"] = record.model_dump(mode="json", by_alias=True)
            raise

    async def get_process(self, agent: Agent) -> tuple[str, int | None]:
        """Return the gateway's state (`running`, `starting` or `not_running`) and its pid in the container.

        For an agent on another server it is the stored state, without a pid.
        """
        if agent.host_id != self._runtimes.agents.host_id:
            is_up = agent.state in (AgentState.RUNNING, AgentState.STARTING)
            return (agent.state.value if is_up else "not_running"), None
        try:
            process = (await self._runtimes.get_warden(agent.id).processes()).get(GATEWAY_PROCESS)
        except Problem:
            return "not_running", None
        if process is None or process.state != "running":
            return "not_running", None
        return "starting" if agent.state is AgentState.STARTING else "running", process.pid

    async def _token(self, caller: Caller, agent_id: str) -> Sensitive[str] | None:
        """Return the gateway token for its holder and for unrestricted service keys."""
        if caller.kind is CallerKind.GATEWAY or (caller.kind is CallerKind.SERVICE and not caller.scopes):
            return await self._tokens.read(caller, agent_id)
        return None
