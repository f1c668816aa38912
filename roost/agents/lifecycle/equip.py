"""Equip: gathers from the rooms what belongs to an agent and has to reach its gateway at a start."""

from roost.agents.lifecycle.model import Equipment
from roost.agents.models.service import ModelGateway
from roost.agents.roster.model import Agent
from roost.agents.secrets.delivery import Delivery


class Equip:
    def __init__(self, models: ModelGateway, secrets: Delivery) -> None:
        self._models = models
        self._secrets = secrets

    async def __call__(self, agent: Agent) -> Equipment:
        offer = await self._models.offer(agent.id)
        given = await self._secrets.environment(agent.id)
        return Equipment(models=offer.ids, environment=given.values, taken=lambda: self._secrets.taken(agent.id, given))
