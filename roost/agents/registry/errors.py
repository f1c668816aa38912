"""Errors of agent records."""

from roost.core.problem import Problem, ProblemKind


class InvalidAgentName(Problem):
    kind = ProblemKind.INVALID
    message = "Agent name is required"


class AgentLimitReached(Problem):
    kind = ProblemKind.FORBIDDEN
    message = "Agent limit reached"


class AgentNotFound(Problem):
    """The agent does not exist, or it is being deleted."""

    kind = ProblemKind.MISSING
    message = "Agent not found"


class AgentNotRunning(Problem):
    """The agent has no running container to ask."""

    kind = ProblemKind.UNAVAILABLE
    message = "Agent is not running"
