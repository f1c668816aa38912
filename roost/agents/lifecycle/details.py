"""One agent as a caller may see it: its record, its address, and what is true of its gateway now."""

from roost.agents.lifecycle import schemas
from roost.agents.lifecycle.gateway import PROCESS, Origin
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.model import Agent, AgentState
from roost.agents.registry.repository import AgentRepository
from roost.agents.scripts.schemas import ScriptListRecord
from roost.agents.scripts.service import ScriptService
from roost.agents.secrets.schemas import AgentSecretRecord
from roost.agents.secrets.service import SecretService
from roost.core.problem import Problem
from roost.core.sensitive import Sensitive
from roost.identity.caller import Caller, CallerKind
from roost.identity.gateway_tokens import GatewayTokens


class AgentDetails:
    def __init__(
        self,
        roster: AgentRepository,
        reach: AgentRuntimes,
        gateways: GatewayTokens,
        secrets: SecretService,
        origin: Origin,
        scripts: ScriptService,
    ) -> None:
        self._roster = roster
        self._reach = reach
        self._gateways = gateways
        self._secrets = secrets
        self._origin = origin
        self._scripts = scripts

    async def list(self, caller: Caller) -> schemas.AgentList:
        agents = await self._roster.list(caller.tenant_id)
        records = [schemas.record(agent, self._origin(agent.id)) for agent in agents]
        return schemas.AgentList(agents=records, agent_limit=await self._roster.get_limit(caller.tenant_id))

    async def show(self, caller: Caller, agent_id: str) -> schemas.AgentDetail:
        """Raises AgentNotFound."""
        agent = await self._roster.get(agent_id)
        status, pid = await self.process(agent)
        lifecycle = ScriptListRecord.from_scripts(await self._scripts.list(agent_id))
        record = schemas.record(agent, self._origin(agent.id), await self._token(caller, agent.id), lifecycle)
        secrets = [AgentSecretRecord.from_attached(one) for one in await self._secrets.list_attached(agent_id)]
        return schemas.AgentDetail(
            agent=record, process_status=status, process_id=pid, lifecycle=lifecycle, secrets=secrets
        )

    async def record(self, caller: Caller, agent: Agent) -> schemas.AgentRecord:
        lifecycle = ScriptListRecord.from_scripts(await self._scripts.list(agent.id))
        return schemas.record(agent, self._origin(agent.id), await self._token(caller, agent.id), lifecycle)

    async def process(self, agent: Agent) -> tuple[str, int | None]:
        """Return the gateway's state by its warden (`running`, `starting`, `not_running`) and its pid inside."""
        try:
            process = (await self._reach.get_warden(agent.id).processes()).get(PROCESS)
        except Problem:
            return "not_running", None
        if process is None or process.state != "running":
            return "not_running", None
        return "starting" if agent.state is AgentState.STARTING else "running", process.pid

    async def _token(self, caller: Caller, agent_id: str) -> Sensitive[str] | None:
        """The gateway token, for its holder and for an unrestricted service key: clients look for it in the record."""
        if caller.kind is CallerKind.GATEWAY or (caller.kind is CallerKind.SERVICE and not caller.scopes):
            return await self._gateways.read(agent_id)
        return None
