"""Errors of the workflows (contract, Errors)."""

from roost.agents.registry.model import Agent
from roost.core.problem import InvalidInput, Problem


class AgentStartFailed(Problem):
    """Created, but not started; the response carries the agent, which is listed and can be restarted."""

    message = "Gateway failed to start"

    def __init__(self, agent: Agent) -> None:
        super().__init__()
        self.agent = agent


class AgentRestartFailed(Problem):
    message = "Restart failed"


class UnknownEngine(InvalidInput):
    message = "Unknown engine"


class AgentDeleteFailed(Problem):
    """The agent is hidden, and its remains are removed in the background."""

    message = "Delete failed"
