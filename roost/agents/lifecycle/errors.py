"""What can go wrong in an agent's life (contract, Errors)."""

from roost.agents.roster.model import Agent
from roost.core.problem import Kind, Problem


class StartFailed(Problem):
    """After create; the response carries the agent, which is listed and can be restarted."""

    kind = Kind.FAILED
    message = "Gateway failed to start"

    def __init__(self, agent: Agent) -> None:
        super().__init__()
        self.agent = agent


class RestartFailed(Problem):
    kind = Kind.FAILED
    message = "Restart failed"


class UnknownEngine(Problem):
    kind = Kind.INVALID
    message = "Unknown engine"


class TooManySkills(Problem):
    kind = Kind.INVALID
    message = "An agent can have at most 10 skills"


class UnknownSkill(Problem):
    kind = Kind.MISSING
    message = "Skill not found"


class DeleteFailed(Problem):
    """The agent is hidden already; what is left of it is removed in the background."""

    kind = Kind.FAILED
    message = "Delete failed"
