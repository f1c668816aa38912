"""Errors of the egress proxy itself; `roost/net/errors.py` has those of the connections that it makes."""

from roost.core.problem import ProblemKind
from roost.net.errors import EgressProblem, InvalidTarget


class InvalidProxyRequest(InvalidTarget):
    message = "This is an HTTP proxy: send CONNECT host:port or an absolute http:// URL"


class HeadTooLarge(EgressProblem):
    kind = ProblemKind.TOO_LARGE
    reason = "head_too_large"
    message = "The request's head is too large"


class HeadTooSlow(EgressProblem):
    kind = ProblemKind.INVALID
    reason = "head_too_slow"
    message = "The request's head took too long"


class TooManyConnections(EgressProblem):
    kind = ProblemKind.LIMITED
    reason = "too_many_connections"
    message = "This agent has too many connections open"


class ConnectionIdle(EgressProblem):
    kind = ProblemKind.UNAVAILABLE
    reason = "idle"
    message = "Nothing moved on the connection for too long"
