"""Skills of a running engine: folders below `skills` in the workspace, each with a `SKILL.md`.

Roost writes the folders. A driver makes its engine look there, and can say what the engine found.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from roost.drivers.engine.abilities.agent_context import AgentContext


class SkillAbility(ABC):
    """Ability to load skills of the workspace.

    Methods raise EngineFailed, and the errors of dialling (DialRefused, ContainerNotRunning).
    """

    @abstractmethod
    async def list(self, agent: AgentContext) -> Mapping[str, str | None]:
        """Return all skills that the engine lists, its own among them, with why it does not use one, else None."""

    @abstractmethod
    async def refresh(self, agent: AgentContext) -> None:
        """Make the engine notice at once that folders have changed."""
