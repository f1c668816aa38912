"""Collects the models, secrets and channels that an agent's gateway is started with."""

from roost.agents.library.instances.service import TemplateInstanceService
from roost.agents.lifecycle.workflows.model import StartupInputs
from roost.agents.models.gateway.service import ModelGateway
from roost.agents.registry.model import Agent
from roost.agents.setup.channels.repository import ChannelRepository
from roost.agents.setup.secrets.environment import SecretEnvironment


class StartupInputCollector:
    def __init__(
        self,
        models: ModelGateway,
        secrets: SecretEnvironment,
        channels: ChannelRepository,
        instances: TemplateInstanceService,
    ) -> None:
        self._models = models
        self._secrets = secrets
        self._channels = channels
        self._instances = instances

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
