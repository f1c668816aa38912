"""Equip: gathers from the rooms what belongs to an agent and has to reach its gateway at a start."""

from roost.agents.channels.book import Book
from roost.agents.lifecycle.model import Equipment
from roost.agents.models.service import ModelGateway
from roost.agents.roster.model import Agent
from roost.agents.secrets.delivery import Delivery


class Equip:
    def __init__(self, models: ModelGateway, secrets: Delivery, channels: Book) -> None:
        self._models = models
        self._secrets = secrets
        self._channels = channels

    async def __call__(self, agent: Agent) -> Equipment:
        offer = await self._models.offer(agent.id)
        given = await self._secrets.environment(agent.id)
        return Equipment(
            models=offer.ids,
            all_models=offer.complete,
            environment=given.values,
            channels=await self._channels.setups(agent.id),
            taken=lambda: self._secrets.taken(agent.id, given),
        )
