"""What can be wrong with an agent record."""

from roost.core.problem import Kind, Problem


class InvalidName(Problem):
    kind = Kind.INVALID
    message = "Agent name is required"


class AgentLimitReached(Problem):
    kind = Kind.FORBIDDEN
    message = "Agent limit reached"


class AgentGone(Problem):
    """There is no such agent, or it is being deleted."""

    kind = Kind.MISSING
    message = "Agent not found"


class AgentNotRunning(Problem):
    """The agent has no running container to ask."""

    kind = Kind.UNAVAILABLE
    message = "Agent is not running"
