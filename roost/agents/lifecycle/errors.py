"""What can go wrong in an agent's life (contract, Errors)."""

from roost.agents.registry.model import Agent
from roost.core.problem import Problem, ProblemKind


class AgentStartFailed(Problem):
    """After create; the response carries the agent, which is listed and can be restarted."""

    kind = ProblemKind.FAILED
    message = "Gateway failed to start"

    def __init__(self, agent: Agent) -> None:
        super().__init__()
        self.agent = agent


class AgentRestartFailed(Problem):
    kind = ProblemKind.FAILED
    message = "Restart failed"


class UnknownEngine(Problem):
    kind = ProblemKind.INVALID
    message = "Unknown engine"


class AgentDeleteFailed(Problem):
    """The agent is hidden already; what is left of it is removed in the background."""

    kind = ProblemKind.FAILED
    message = "Delete failed"
