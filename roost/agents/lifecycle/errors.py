"""Errors of the workflows (contract, Errors)."""

from roost.agents.registry.model import Agent
from roost.core.problem import Problem, ProblemKind


class AgentStartFailed(Problem):
    """Created, but not started; the response carries the agent, which is listed and can be restarted."""

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
    """The agent is hidden, and its remains are removed in the background."""

    kind = ProblemKind.FAILED
    message = "Delete failed"
