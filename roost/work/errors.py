"""Errors of operations."""

from roost.core.problem import NotFound, ResourceConflict


class OperationNotFound(NotFound):
    """The operation does not exist, or finished longer ago than `RETENTION`."""

    message = "Operation not found"


class LeaseLost(ResourceConflict):
    """The attempt is over: a newer one began, or the operation was released. It must not write any more."""

    message = "The operation is no longer held by this process"
