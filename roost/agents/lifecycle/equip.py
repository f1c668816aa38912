"""Equip: gathers from the rooms what belongs to an agent and has to reach its gateway at a start."""

from roost.agents.lifecycle.model import Equipment
from roost.agents.models.service import ModelGateway
from roost.agents.roster.model import Agent


class Equip:
    def __init__(self, models: ModelGateway) -> None:
        self._models = models

    async def __call__(self, agent: Agent) -> Equipment:
        offer = await self._models.offer(agent.id)
        return Equipment(models=offer.ids)
