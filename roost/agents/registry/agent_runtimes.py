"""Access to agents' wardens, ports of their containers, and their engines' drivers."""

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from roost.agents.registry.agent_containers import AgentContainers
from roost.agents.registry.errors import AgentNotRunning
from roost.agents.registry.model import Agent
from roost.agents.registry.repository import AgentRepository
from roost.core.problem import Problem
from roost.core.sensitive import Sensitive
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.contract import Engine, EngineNotInstalled
from roost.drivers.runtime.contract import WARDEN_PORTS, Runtime, Stream
from roost.warden_client.client import WardenClient
from roost.warden_client.errors import ContainerNotRunning, DialRefused, WardenDisconnected

LoadValues = Callable[[str], Awaitable[Mapping[str, Sensitive[str]]]]
"""Returns values of an agent by name: its environment, or what its logs and snapshots must not hold."""
WardenProblems = Mapping[type[Exception], Callable[[], Problem]]
"""Errors of the API for those of a warden; of several that fit, the first counts."""
GATEWAY_PROCESS = "gateway"
"""The supervised process of a container that is the engine's gateway."""


class AgentRuntimes:
    def __init__(self, agents: AgentRepository, runtime: Runtime, engines: Sequence[Engine]) -> None:
        self.agents = agents
        self.runtime = runtime if isinstance(runtime, AgentContainers) else AgentContainers([runtime])
        self._engines: Mapping[str, Engine] = {engine.id: engine for engine in engines}

    def record_use(self, agent_id: str) -> None:
        """Record that the agent is used now, and put it before others for some seconds. Fast, and never raises."""
        self.agents.last_uses.record(agent_id)
        self.runtime.prefer(agent_id)

    def get_warden(self, agent_id: str) -> WardenClient:
        return WardenClient(partial(self.runtime.connect, agent_id))

    async def has_container(self, agent_id: str) -> bool:
        """Return True if the agent's container answers, False if it has none.

        Raises ContainerNotRunning if it runs and cannot be reached now, and the errors of `Runtime.list`.
        """
        try:
            await self.get_warden(agent_id).ping()
        except ContainerNotRunning:
            if await self.runtime.find_container(agent_id) is not None:
                raise
            return False
        return True

    def list_engines(self) -> Sequence[Engine]:
        """List the installed engines in order of preference."""
        return [engine for engine in self._engines.values() if engine.installed()]

    def get_engine(self, engine_id: str) -> Engine:
        """Return an engine. Raises EngineNotInstalled for an unknown id."""
        try:
            return self._engines[engine_id]
        except KeyError:
            raise EngineNotInstalled from None

    async def get_context(self, agent_id: str) -> tuple[Engine, AgentContext]:
        """Return the agent's engine, and the context for its abilities.

        Raises AgentNotFound, AgentOnOtherHost.
        """
        agent = await self.agents.get_here(agent_id)
        token = await self.agents.get_internal_token(agent_id)
        return self.get_engine(agent.engine), AgentContext(self.get_warden(agent_id), token, agent.engine_version)

    async def dial(self, agent_id: str, port: int | None = None) -> Stream:
        """Open a stream to a port of the agent's container, the gateway's by default.

        Raises AgentNotFound, AgentOnOtherHost, ContainerNotRunning, DialRefused.
        """
        if port in WARDEN_PORTS:  # a container from before an update has a warden that would open it
            raise DialRefused
        agent = await self.agents.get_here(agent_id)
        return await self.get_warden(agent_id).dial(port or self.get_engine(agent.engine).port)

    def get_gateway_port(self, agent: Agent) -> int:
        """Return the port of the agent's gateway in its container. Raises UnknownEngine."""
        return self.get_engine(agent.engine).port

    async def get_credential(self, agent_id: str) -> tuple[str, Sensitive[str]]:
        """Return the header that authenticates the edge to the agent's gateway. Raises AgentNotFound."""
        agent = await self.agents.get(agent_id)
        token = await self.agents.get_internal_token(agent_id)
        return self.get_engine(agent.engine).credential(token)


@contextmanager
def translate_warden_errors(problems: WardenProblems) -> Generator[None]:
    """Raise the errors of the API for those of a warden, AgentNotRunning if its container is gone."""
    try:
        yield
    except (ContainerNotRunning, WardenDisconnected):
        raise AgentNotRunning from None
    except tuple(problems) as error:
        problem = next(problem for kind, problem in problems.items() if isinstance(error, kind))
        raise problem() from None
