"""Errors of agent records."""

from roost.core.problem import AccessDenied, InvalidInput, NotFound, ResourceConflict, ServiceUnavailable
from roost.work import SubjectElsewhere


class InvalidAgentName(InvalidInput):
    message = "Agent name is required"
    field = "name"


class AgentLimitReached(AccessDenied):
    message = "Agent limit reached"


class NoFreePort(ServiceUnavailable):
    """Each agent has a port of its own, and all are taken."""

    message = "No port is free for another agent"


class TooFewPorts(ResourceConflict):
    """The agents of this server need more ports than the setting `agent_ports` has."""


class AgentNotFound(NotFound):
    """The agent does not exist, or it is being deleted."""

    message = "Agent not found"


class AgentOnOtherHost(SubjectElsewhere):
    """Another server of this deployment has the agent's container and files, or serves it."""

    message = "The agent is on another server"


class AgentNotRunning(ServiceUnavailable):
    """The agent has no running container to ask."""

    message = "Agent is not running"
