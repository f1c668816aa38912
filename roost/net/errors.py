"""Errors of outgoing connections.

Messages name the host as the caller wrote it and never a resolved address: an agent or a tenant must not learn the
layout of a network that it cannot reach.

EgressProblem
 +- InvalidTarget                                                       the caller's mistake
 +- EgressRefused: HostRefused, PortRefused, AddressRefused, EncryptionRequired    the policy's answer
 +- NameNotResolved, HostUnreachable, ConnectTimeout                    the internet's side
"""

from typing import ClassVar

from roost.core.problem import Problem, ProblemKind


class EgressProblem(Problem):
    """An outgoing connection failed; `reason` is its value in the log."""

    reason: ClassVar[str] = "failed"


class InvalidTarget(EgressProblem):
    kind = ProblemKind.INVALID
    reason = "bad_request"
    message = "The host and port are malformed"


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
    message = "The URL must start with https://"


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
