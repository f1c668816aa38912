"""Access to an agent's warden, to streams to ports of its container, and to its engine's driver."""

from collections.abc import Mapping, Sequence
from functools import partial

from roost.agents.registry.repository import AgentRepository
from roost.core.sensitive import Sensitive
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.contract import Dial, Engine, EngineNotInstalled
from roost.drivers.runtime.contract import Runtime, Stream
from roost.drivers.runtime.warden_client import WardenClient


class AgentRuntimes:
    def __init__(self, roster: AgentRepository, runtime: Runtime, engines: Sequence[Engine]) -> None:
        self._roster = roster
        self._runtime = runtime
        self._engines: Mapping[str, Engine] = {engine.id: engine for engine in engines}

    def get_warden(self, agent_id: str) -> WardenClient:
        return WardenClient(partial(self._runtime.connect, agent_id))

    def port_dialer(self, agent_id: str) -> Dial:
        """Opens streams to ports of the agent's container."""
        return self.get_warden(agent_id).dial

    def list_engines(self) -> Sequence[Engine]:
        """The engines that can be used now, in the order in which they are offered."""
        return [engine for engine in self._engines.values() if engine.installed()]

    def get_engine(self, engine_id: str) -> Engine:
        """Raises EngineNotInstalled for an engine that this server does not know."""
        try:
            return self._engines[engine_id]
        except KeyError:
            raise EngineNotInstalled from None

    async def get_context(self, agent_id: str) -> tuple[Engine, AgentContext]:
        """The agent's engine, and the way to it for the engine's abilities. Raises AgentNotFound."""
        agent = await self._roster.get(agent_id)
        token = await self._roster.get_internal_token(agent_id)
        return self.get_engine(agent.engine), AgentContext(self.get_warden(agent_id), token, agent.engine_version)

    async def dial_gateway(self, agent_id: str) -> Stream:
        """Open a stream to the gateway's port. Raises AgentNotFound, ContainerNotRunning or DialRefused."""
        agent = await self._roster.get(agent_id)
        return await self.get_warden(agent_id).dial(self.get_engine(agent.engine).port)

    async def get_credential(self, agent_id: str) -> tuple[str, Sensitive[str]]:
        """The header by which our edge is known to the agent's gateway. Raises AgentNotFound."""
        agent = await self._roster.get(agent_id)
        token = await self._roster.get_internal_token(agent_id)
        return self.get_engine(agent.engine).credential(token)
