"""Errors of storage gateways; clients show the messages."""

from roost.core.problem import Problem, ProblemKind


class GatewayNotFound(Problem):
    """The gateway does not exist or belongs to another tenant; the response does not say which."""

    kind = ProblemKind.MISSING
    message = "Gateway not found"


class InvalidGatewayDomain(Problem):
    kind = ProblemKind.INVALID
    message = "Invalid domain"


class DomainTaken(Problem):
    kind = ProblemKind.CONFLICT
    message = "Domain is not available"


class GatewayLimitReached(Problem):
    kind = ProblemKind.FORBIDDEN
    message = "Gateway limit reached"


class InvalidAccessControl(Problem):
    kind = ProblemKind.INVALID
    message = "Invalid access control"


class AccessControlLimitReached(Problem):
    kind = ProblemKind.FORBIDDEN
    message = "Access control limit reached"


class AccessControlNotFound(Problem):
    kind = ProblemKind.MISSING
    message = "Access control not found"


class PluginNotFound(Problem):
    """The plugin does not exist or is not installed."""

    kind = ProblemKind.MISSING
    message = "Plugin not found"
