"""What can go wrong with storage gateways, in the words that clients show."""

from roost.core.problem import Problem, ProblemKind


class GatewayNotFound(Problem):
    """There is none of that id, or it is another tenant's: the answer does not tell which."""

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
    """There is no such plugin, or it is not installed."""

    kind = ProblemKind.MISSING
    message = "Plugin not found"
