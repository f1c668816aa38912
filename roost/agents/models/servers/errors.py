"""Errors of model servers on this machine."""

from roost.core.problem import AccessDenied, NotFound, ResourceConflict


class ModelServersClosed(AccessDenied):
    """The caller is not the operator, other machines can reach the server, or `model_servers` is `none`."""

    message = (
        "Model servers of this machine are for owners and unlimited keys of the tenant 'default' only, on a server "
        "that no other machine reaches (domain localhost, no TLS) and whose setting model_servers is not none; else "
        "connect one by ROOST_MODEL_URL"
    )


class ModelServerNotFound(NotFound):
    message = "No model server answers there"


class ServerModelNotFound(NotFound):
    message = "The model server does not have this model"


class ModelAddressTaken(ResourceConflict):
    """The tenant's variable with the server's address has another value."""

    message = "The variable for the model server's address has another value"
