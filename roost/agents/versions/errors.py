"""What can go wrong with versions (contract, Errors)."""

from roost.core.problem import Kind, Problem


class InvalidVersion(Problem):
    """The engine has no such version."""

    kind = Kind.INVALID
    message = "Invalid version"


class UnknownVersions(Problem):
    """A version that is not installed, while the registry that would know it gives no answer."""

    kind = Kind.UNAVAILABLE
    message = "That version is not installed here, and the registry that has it cannot be asked"


class TooManyVersions(Problem):
    kind = Kind.FORBIDDEN
    message = "Too many versions of this engine are installed here; an operator can remove one"


class NotInstalled(Problem):
    """An install failed; what its programs said is for the operator's log and not for agents."""

    kind = Kind.FAILED
    message = "That version could not be installed; the server's log says why"
