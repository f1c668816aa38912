"""Collects the models, secrets and channels that an agent's gateway is started with, and its values that stay private.

The latter are those of its credentials, which logs mask and snapshots leave out.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from roost.agents.library.instances.service import TemplateInstanceService
from roost.agents.lifecycle.workflows.model import StartupInputs
from roost.agents.models.gateway.service import ModelGateway
from roost.agents.registry.model import Agent
from roost.agents.registry.repository import AgentRepository
from roost.agents.setup.channels.repository import ChannelRepository
from roost.agents.setup.secrets.environment import SecretEnvironment
from roost.core.sensitive import Sensitive
from roost.identity.gateway_tokens import GatewayTokens
from roost.identity.platform_tokens import PlatformTokens


@dataclass(frozen=True)
class PrivateValues:
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
