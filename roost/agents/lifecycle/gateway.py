"""Brings up the gateway of an agent inside its container, and tells why when it does not come up."""

from collections.abc import Awaitable, Callable, Sequence

from roost.agents.lifecycle.model import MODEL_URL, PROXY_URL, StartupInputs
from roost.agents.logs.service import sanitize_output
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.model import Agent
from roost.agents.registry.repository import AgentRepository
from roost.core import clock
from roost.core.periodic import Backoff
from roost.core.problem import Problem, ProblemKind
from roost.core.secret_mask import SecretMask
from roost.drivers.engine.contract import Engine, GatewaySetup
from roost.drivers.runtime.warden_client import (
    PathRefused,
    WardenClient,
    WardenFileNotFound,
    WardenFileTooLarge,
    WardenNotAFile,
)

PROCESS = "gateway"
_CONFIG_LIMIT = 4 * 1024**2
_FIRST_WAIT, _LONGEST_WAIT = 0.01, 0.2
_TAIL = 12

Origin = Callable[[str], str]
"""An agent's id to its public origin (`http://{agentId}.agents.localhost:8642`)."""
Equip = Callable[[Agent], Awaitable[StartupInputs]]


class GatewayFailed(Problem):
    """The gateway exited or did not answer in time; the message ends with its last log lines."""

    kind = ProblemKind.FAILED
    message = "The gateway did not start"


class GatewayStarter:
    def __init__(self, roster: AgentRepository, reach: AgentRuntimes, origin: Origin, equip: Equip) -> None:
        self._roster = roster
        self._reach = reach
        self._origin = origin
        self._equip = equip

    async def start(self, agent: Agent) -> None:
        """(Re)start the gateway and return once it answers. The container must be running. Raises GatewayFailed."""
        engine, warden = self._reach.get_engine(agent.engine), self._reach.get_warden(agent.id)
        await warden.stop(PROCESS)
        equipment = await self._equip(agent)
        setup = await self._setup(agent, equipment)
        plan = engine.plan(agent.engine_version, setup)
        for path, content in plan.files.items():
            await warden.write(path, content, root="home", mode=0o600)
        given = {name: value.reveal() for name, value in equipment.environment.items()}
        await warden.start(PROCESS, plan.argv, env={**given, **plan.env})
        await self._until_ready(engine, warden, _mask(equipment))
        await equipment.taken()

    async def setup(self, agent: Agent) -> GatewaySetup:
        """What the gateway would be started with now. The container must be running."""
        return await self._setup(agent, await self._equip(agent))

    async def is_up(self, agent: Agent) -> bool:
        """Whether the agent's gateway runs and answers now. Never raises for an agent that is down."""
        warden = self._reach.get_warden(agent.id)
        try:
            process = (await warden.processes()).get(PROCESS)
            return process is not None and await self._reach.get_engine(agent.engine).ready(warden.dial)
        except Problem:
            return False

    async def _setup(self, agent: Agent, equipment: StartupInputs) -> GatewaySetup:
        engine, warden = self._reach.get_engine(agent.engine), self._reach.get_warden(agent.id)
        return GatewaySetup(
            agent_id=agent.id,
            name=agent.profile.name,
            origin=self._origin(agent.id),
            token=await self._roster.get_internal_token(agent.id),
            model_url=MODEL_URL,
            models=equipment.models,
            all_models=equipment.all_models,
            proxy_url=PROXY_URL,
            channels=equipment.channels,
            existing={path: content for path in engine.reads if (content := await _existing(warden, path)) is not None},
        )

    async def _until_ready(self, engine: Engine, warden: WardenClient, mask: SecretMask) -> None:
        deadline, backoff = clock.monotonic_seconds() + engine.start_deadline, Backoff(_FIRST_WAIT, _LONGEST_WAIT)
        while clock.monotonic_seconds() < deadline:
            if await engine.ready(warden.dial):
                return
            process = (await warden.processes()).get(PROCESS)
            if process is None or process.restarts or process.state == "exited":
                code = None if process is None else process.exit_code
                await warden.stop(PROCESS)
                raise GatewayFailed(await _with_logs(f"The gateway exited with code {code}", warden, mask))
            await backoff.pause()
        await warden.stop(PROCESS)
        raise GatewayFailed(
            await _with_logs(f"The gateway did not answer within {engine.start_deadline:.0f} s", warden, mask)
        )


async def _existing(warden: WardenClient, path: str) -> bytes | None:
    """A file that the last run left; whatever else an agent put in its place counts as absent."""
    try:
        return await warden.read(path, root="home", limit=_CONFIG_LIMIT)
    except (WardenFileNotFound, WardenNotAFile, WardenFileTooLarge, PathRefused):
        return None


def _mask(equipment: StartupInputs) -> SecretMask:
    """What a gateway was given is for it alone, and it may print all of it."""
    tokens = [token for one in equipment.channels.values() for token in (one.bot_token, one.app_token) if token]
    return SecretMask([*equipment.environment.values(), *tokens])


async def _with_logs(what: str, warden: WardenClient, mask: SecretMask) -> str:
    last = (await warden.logs(source=PROCESS, limit=_TAIL))[-_TAIL:]
    lines: Sequence[str] = [sanitize_output(mask(line.text)) for line in last]
    return "\n".join([f"{what}. Its last lines:", *lines]) if lines else f"{what}, and wrote nothing."
