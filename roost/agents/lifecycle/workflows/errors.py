"""Errors of the workflows (contract, Errors)."""

from roost.agents.registry.model import Agent
from roost.core.problem import InvalidInput, Problem
from roost.core.sanitize import hide_paths
from roost.drivers.runtime.contract import RuntimeFailed


class AgentStartFailed(Problem):
    """Created, but not started; the response carries the agent, which is listed and can be restarted."""

    message = "Gateway failed to start"

    def __init__(self, agent: Agent) -> None:
        super().__init__()
        self.agent = agent


class AgentRestartFailed(Problem):
    message = "Restart failed"


class DiskLimitReached(Problem):
    """The agent occupies too much of the disk; its container runs, and lets files only be read and deleted."""

    message = "The agent uses too much disk space"


class UnknownEngine(InvalidInput):
    message = "Unknown engine"


def public_reason(error: Exception) -> str:
    """Return why an agent did not start, as its users may see it: without paths of the server's machine."""
    if isinstance(error, RuntimeFailed):
        return hide_paths(error.message)
    return error.message if isinstance(error, Problem) else "Internal error"


class AgentDeleteFailed(Problem):
    """The agent is hidden, and its remains are removed in the background."""

    message = "Delete failed"
