"""Errors of storage gateways; clients show the messages."""

from roost.core.problem import AccessDenied, InvalidInput, NotFound, ResourceConflict


class GatewayNotFound(NotFound):
    """The gateway does not exist or belongs to another tenant; the response does not say which."""

    message = "Gateway not found"


class InvalidGatewayDomain(InvalidInput):
    message = "Invalid domain"


class GatewayDomainTaken(ResourceConflict):
    message = "Domain is not available"


class GatewayLimitReached(AccessDenied):
    message = "Gateway limit reached"


class InvalidAccessControl(InvalidInput):
    message = "Invalid access control"


class AccessControlLimitReached(AccessDenied):
    message = "Access control limit reached"


class AccessControlNotFound(NotFound):
    message = "Access control not found"


class PluginNotFound(NotFound):
    """The plugin does not exist or is not installed."""

    message = "Plugin not found"
