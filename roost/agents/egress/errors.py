"""What can go wrong between an agent and the internet. Messages name the host as the agent wrote it and never an
address that was found for it: an agent must not learn the layout of the network that it cannot reach.

EgressProblem
 +- BadRequest, HeadTooLarge, HeadTooSlow, TooManyConnections    the agent's side
 +- Refused: HostRefused, PortRefused, AddressRefused, NotEncrypted    the policy's answer
 +- NameNotResolved, Unreachable, TooSlow, Idle                  the internet's side
"""

from typing import ClassVar

from roost.core.problem import Kind, Problem


class EgressProblem(Problem):
    """`reason` is the word that the log shows."""

    reason: ClassVar[str] = "failed"


class BadRequest(EgressProblem):
    kind = Kind.INVALID
    reason = "bad_request"
    message = "This is an HTTP proxy: send CONNECT host:port or an absolute http:// URL"


class HeadTooLarge(EgressProblem):
    kind = Kind.TOO_LARGE
    reason = "head_too_large"
    message = "The request's head is too large"


class HeadTooSlow(EgressProblem):
    kind = Kind.INVALID
    reason = "head_too_slow"
    message = "The request's head took too long"


class TooManyConnections(EgressProblem):
    kind = Kind.LIMITED
    reason = "too_many_connections"
    message = "This agent has too many connections open"


class Refused(EgressProblem):
    kind = Kind.FORBIDDEN
    reason = "refused"


class HostRefused(Refused):
    reason = "host"

    def __init__(self, host: str) -> None:
        super().__init__(f"{host} is refused: this deployment does not allow that host")


class PortRefused(Refused):
    reason = "port"

    def __init__(self, host: str, port: int) -> None:
        super().__init__(f"{host} is refused: port {port} is closed to agents")


class AddressRefused(Refused):
    reason = "address"

    def __init__(self, host: str) -> None:
        super().__init__(f"{host} is refused: it leads to an address that is not on the public internet")


class NotEncrypted(Refused):
    reason = "not_encrypted"
    message = "The address has to be one of HTTPS"


class NameNotResolved(EgressProblem):
    kind = Kind.UNAVAILABLE
    reason = "unresolved"

    def __init__(self, host: str) -> None:
        super().__init__(f"{host} could not be resolved")


class Unreachable(EgressProblem):
    kind = Kind.UNAVAILABLE
    reason = "unreachable"

    def __init__(self, host: str) -> None:
        super().__init__(f"{host} could not be reached")


class TooSlow(EgressProblem):
    kind = Kind.UNAVAILABLE
    reason = "timeout"

    def __init__(self, host: str) -> None:
        super().__init__(f"{host} did not answer in time")


class Idle(EgressProblem):
    kind = Kind.UNAVAILABLE
    reason = "idle"
    message = "Nothing moved on the connection for too long"
