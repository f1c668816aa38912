"""What can go wrong between an agent and the internet. Messages name the host as the agent wrote it and never an
address that was found for it: an agent must not learn the layout of the network that it cannot reach.

EgressProblem
 +- BadRequest, HeadTooLarge, HeadTooSlow, TooManyConnections    the agent's side
 +- Refused: HostRefused, PortRefused, AddressRefused, NotEncrypted    the policy's answer
 +- NameNotResolved, Unreachable, TooSlow, Idle                  the internet's side
"""

from typing import ClassVar

from roost.core.problem import Problem, ProblemKind


class EgressProblem(Problem):
    """`reason` is the word that the log shows."""

    reason: ClassVar[str] = "failed"


class InvalidProxyRequest(EgressProblem):
    kind = ProblemKind.INVALID
    reason = "bad_request"
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


class EgressRefused(EgressProblem):
    kind = ProblemKind.FORBIDDEN
    reason = "refused"


class HostRefused(EgressRefused):
    reason = "host"

    def __init__(self, host: str) -> None:
        super().__init__(f"{host} is refused: this deployment does not allow that host")


class PortRefused(EgressRefused):
    reason = "port"

    def __init__(self, host: str, port: int) -> None:
        super().__init__(f"{host} is refused: port {port} is closed to agents")


class AddressRefused(EgressRefused):
    reason = "address"

    def __init__(self, host: str) -> None:
        super().__init__(f"{host} is refused: it leads to an address that is not on the public internet")


class EncryptionRequired(EgressRefused):
    reason = "not_encrypted"
    message = "The address has to be one of HTTPS"


class NameNotResolved(EgressProblem):
    kind = ProblemKind.UNAVAILABLE
    reason = "unresolved"

    def __init__(self, host: str) -> None:
        super().__init__(f"{host} could not be resolved")


class HostUnreachable(EgressProblem):
    kind = ProblemKind.UNAVAILABLE
    reason = "unreachable"

    def __init__(self, host: str) -> None:
        super().__init__(f"{host} could not be reached")


class ConnectTimeout(EgressProblem):
    kind = ProblemKind.UNAVAILABLE
    reason = "timeout"

    def __init__(self, host: str) -> None:
        super().__init__(f"{host} did not answer in time")


class ConnectionIdle(EgressProblem):
    kind = ProblemKind.UNAVAILABLE
    reason = "idle"
    message = "Nothing moved on the connection for too long"
