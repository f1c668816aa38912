"""What can go wrong with versions (contract, Errors)."""

from roost.core.problem import Problem, ProblemKind


class InvalidEngineVersion(Problem):
    """The engine has no such version."""

    kind = ProblemKind.INVALID
    message = "Invalid version"


class VersionRegistryUnavailable(Problem):
    """A version that is not installed, while the registry that would know it gives no answer."""

    kind = ProblemKind.UNAVAILABLE
    message = "That version is not installed here, and the registry that has it cannot be asked"


class TooManyEngineVersions(Problem):
    kind = ProblemKind.FORBIDDEN
    message = "Too many versions of this engine are installed here; an operator can remove one"


class VersionInstallFailed(Problem):
    """An install failed; what its programs said is for the operator's log and not for agents."""

    kind = ProblemKind.FAILED
    message = "That version could not be installed; the server's log says why"
