"""What can go wrong with storage gateways, in the words that clients show."""

from roost.core.problem import Kind, Problem


class GatewayMissing(Problem):
    """There is none of that id, or it is another tenant's: the answer does not tell which."""

    kind = Kind.MISSING
    message = "Gateway not found"


class InvalidDomain(Problem):
    kind = Kind.INVALID
    message = "Invalid domain"


class DomainTaken(Problem):
    kind = Kind.CONFLICT
    message = "Domain is not available"


class GatewayLimit(Problem):
    kind = Kind.FORBIDDEN
    message = "Gateway limit reached"


class InvalidControl(Problem):
    kind = Kind.INVALID
    message = "Invalid access control"


class ControlLimit(Problem):
    kind = Kind.FORBIDDEN
    message = "Access control limit reached"


class ControlMissing(Problem):
    kind = Kind.MISSING
    message = "Access control not found"


class CustomDomainMissing(Problem):
    kind = Kind.MISSING
    message = "Custom domain not found"


class CustomDomainLimit(Problem):
    kind = Kind.FORBIDDEN
    message = "Custom domain limit reached"


class PluginMissing(Problem):
    """There is no such plugin, or it is not installed."""

    kind = Kind.MISSING
    message = "Plugin not found"
