"""Starts the gateway of an agent inside its container with its models, secrets and channels."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from roost.agents.library.instances.service import TemplateInstanceService
from roost.agents.lifecycle.workflows.model import MODEL_URL, PROXY_URL, StartupInputs
from roost.agents.models.gateway.service import ModelGateway
from roost.agents.registry.agent_runtimes import GATEWAY_PROCESS, AgentRuntimes
from roost.agents.registry.model import Agent
from roost.agents.registry.repository import AgentRepository
from roost.agents.setup.channels.repository import ChannelRepository
from roost.agents.setup.secrets.sealed_secrets import SecretEnvironment
from roost.agents.workspace.logs.service import sanitize_output
from roost.core import clock
from roost.core.periodic import Backoff
from roost.core.problem import Problem
from roost.core.secret_mask import SecretMask
from roost.core.sensitive import Sensitive
from roost.drivers.engine.contract import Engine, GatewaySetup
from roost.identity.gateway_tokens import GatewayTokens
from roost.identity.platform_tokens import PlatformTokens
from roost.warden_client.client import WardenClient
from roost.warden_client.errors import PathRefused, WardenFileNotFound, WardenFileTooLarge, WardenNotAFile

STOP_SECONDS = 3.0
"""Time for a gateway to end before a restart, as at a stop of its container; some wait for silent chat platforms."""
_CONFIG_LIMIT = 4 * 1024**2
_FIRST_PAUSE, _LONGEST_PAUSE, _PAUSE_FACTOR = 0.02, 0.2, 1.05  # an agent waits for at most 5 % of its start
_LOG_LINES = 12

Origin = Callable[[str], str]
"""Returns the public origin (`http://{agentId}.agents.localhost:8642`) of an agent by its id."""
LoadStartupInputs = Callable[[Agent], Awaitable[StartupInputs]]


class GatewayFailed(Problem):
    """The gateway exited or did not answer in time; the message ends with its last log lines."""

    message = "The gateway did not start"


@dataclass
class GatewayStarter:
    """Starts gateways, and reports why one did not start."""

    _runtimes: AgentRuntimes
    _origin: Origin
    _load_inputs: LoadStartupInputs

    async def start(self, agent: Agent) -> None:
        """(Re)start the gateway in the running container and return once it answers. Raises GatewayFailed."""
        engine, warden = self._runtimes.get_engine(agent.engine), self._runtimes.get_warden(agent.id)
        await warden.stop(GATEWAY_PROCESS, STOP_SECONDS)
        inputs = await self._load_inputs(agent)
        setup = await self._build_setup(agent, inputs)
        plan = engine.plan(agent.engine_version, setup)
        for path, content in plan.files.items():
            await warden.write(path, content, root="home", mode=0o600)
        environment = {name: value.reveal() for name, value in inputs.environment.items()}
        await warden.start(GATEWAY_PROCESS, plan.argv, env={**environment, **plan.env})
        await self._wait_until_ready(engine, warden, _secret_mask(inputs))
        await inputs.on_ready()

    async def get_setup(self, agent: Agent) -> GatewaySetup:
        """Return the setup that a start would use now. The container must be running."""
        return await self._build_setup(agent, await self._load_inputs(agent))

    async def is_up(self, agent: Agent) -> bool:
        """Return whether the agent's gateway runs and answers now; never raises for an agent that is down."""
        warden = self._runtimes.get_warden(agent.id)
        try:
            process = (await warden.processes()).get(GATEWAY_PROCESS)
            return process is not None and await self._runtimes.get_engine(agent.engine).ready(warden.dial)
        except Problem:
            return False

    async def _build_setup(self, agent: Agent, inputs: StartupInputs) -> GatewaySetup:
        engine, warden = self._runtimes.get_engine(agent.engine), self._runtimes.get_warden(agent.id)
        return GatewaySetup(
            agent_id=agent.id,
            name=agent.profile.name,
            origin=self._origin(agent.id),
            token=await self._runtimes.agents.get_internal_token(agent.id),
            model_url=MODEL_URL,
            models=inputs.models,
            all_models=inputs.all_models,
            proxy_url=PROXY_URL,
            channels=inputs.channels,
            existing={
                path: content for path in engine.reads if (content := await _read_file(warden, path)) is not None
            },
        )

    async def _wait_until_ready(self, engine: Engine, warden: WardenClient, mask: SecretMask) -> None:
        deadline = clock.monotonic_seconds() + engine.start_deadline
        backoff = Backoff(_FIRST_PAUSE, _LONGEST_PAUSE, _PAUSE_FACTOR)
        while clock.monotonic_seconds() < deadline:
            if await engine.ready(warden.dial):
                return
            process = (await warden.processes()).get(GATEWAY_PROCESS)
            if process is None or process.restarts or process.state == "exited":
                message = f"The gateway exited with code {None if process is None else process.exit_code}"
                break
            await backoff.pause()
        else:
            message = f"The gateway did not answer within {engine.start_deadline:.0f} s"
        await warden.stop(GATEWAY_PROCESS)
        raise GatewayFailed(await _append_logs(message, warden, mask))


async def _read_file(warden: WardenClient, path: str) -> bytes | None:
    """Return a configuration file of the last run, or None if the agent put anything but a readable file there."""
    try:
        return await warden.read(path, root="home", limit=_CONFIG_LIMIT)
    except (WardenFileNotFound, WardenNotAFile, WardenFileTooLarge, PathRefused):
        return None


def _secret_mask(inputs: StartupInputs) -> SecretMask:
    """Return a mask for all secret inputs, because the gateway may print any of them."""
    tokens = [
        token for channel in inputs.channels.values() for token in (channel.bot_token, channel.app_token) if token
    ]
    return SecretMask([*inputs.environment.values(), *tokens])


async def _append_logs(message: str, warden: WardenClient, mask: SecretMask) -> str:
    logs = (await warden.logs(source=GATEWAY_PROCESS, limit=_LOG_LINES))[-_LOG_LINES:]
    lines = [sanitize_output(mask(line.text)) for line in logs]
    return "\n".join([f"{message}. Its last lines:", *lines]) if lines else f"{message}, and wrote nothing."


@dataclass(frozen=True)
class PrivateValues:
    """Values of an agent's credentials, which logs mask and snapshots leave out."""

    _agents: AgentRepository
    _gateway_tokens: GatewayTokens
    _platform_tokens: PlatformTokens
    _channels: ChannelRepository
    _secrets: SecretEnvironment

    async def load(self, agent_id: str) -> Mapping[str, Sensitive[str]]:
        """Return the private values of an agent by name."""
        return {
            "gateway token": await self._gateway_tokens.read(agent_id),
            "internal token": await self._agents.get_internal_token(agent_id),
            "platform token": await self._platform_tokens.get_prefix(),
            **await self._channels.get_private_values(agent_id),
            **await self._secrets.get_private_values(agent_id),
        }


@dataclass(frozen=True)
class StartupInputCollector:
    _models: ModelGateway
    _secrets: SecretEnvironment
    _channels: ChannelRepository
    _instances: TemplateInstanceService

    async def __call__(self, agent: Agent) -> StartupInputs:
        offer = await self._models.get_offer(agent.id)
        environment = await self._secrets.get_environment(agent.id)
        wanted = agent.profile.model or await self._instances.find_model(agent.id)
        return StartupInputs(
            models=sorted(offer.ids, key=lambda model: model != wanted),  # stable, so that the others stay in order
            all_models=offer.complete,
            environment=environment.values,
            channels=await self._channels.get_setups(agent.id),
            on_ready=lambda: self._secrets.mark_synced(agent.id, environment),
        )
