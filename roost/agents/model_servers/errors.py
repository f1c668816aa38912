"""Errors of model servers on this machine."""

from roost.core.problem import AccessDenied, NotFound, ResourceConflict


class ModelServersClosed(AccessDenied):
    """The caller is not the operator, or others than programs of this machine can reach the server."""

    message = "Model servers of this machine are for its operator only"


class ModelServerNotFound(NotFound):
    message = "No model server answers there"


class ServerModelNotFound(NotFound):
    message = "The model server does not have this model"


class ModelAddressTaken(ResourceConflict):
    """The tenant's variable with the server's address has another value."""

    message = "The variable for the model server's address has another value"
