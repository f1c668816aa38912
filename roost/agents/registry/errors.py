"""Errors of agent records."""

from roost.core.problem import AccessDenied, InvalidInput, NotFound, ServiceUnavailable


class InvalidAgentName(InvalidInput):
    message = "Agent name is required"


class AgentLimitReached(AccessDenied):
    message = "Agent limit reached"


class AgentNotFound(NotFound):
    """The agent does not exist, or it is being deleted."""

    message = "Agent not found"


class AgentOnOtherHost(ServiceUnavailable):
    """The agent's container and files are on another server of this deployment."""

    message = "The agent is on another server"


class AgentNotRunning(ServiceUnavailable):
    """The agent has no running container to ask."""

    message = "Agent is not running"
