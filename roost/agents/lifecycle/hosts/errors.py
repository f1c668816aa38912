"""Errors of hosts."""

from roost.core.problem import NotFound, ResourceConflict


class HostNotFound(NotFound):
    message = "There is no such host"


class HostRunning(ResourceConflict):
    """The host cannot be removed, or another process has its identity."""

    message = "The host is running"
