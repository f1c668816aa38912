"""Errors of versions (contract, Errors)."""

from roost.core.problem import Problem, ProblemKind


class InvalidEngineVersion(Problem):
    """The engine has no such version."""

    kind = ProblemKind.INVALID
    message = "Invalid version"


class VersionRegistryUnavailable(Problem):
    """The version is not installed, and its registry does not respond."""

    kind = ProblemKind.UNAVAILABLE
    message = "That version is not installed, and its registry does not respond"


class TooManyEngineVersions(Problem):
    kind = ProblemKind.FORBIDDEN
    message = "Too many versions of this engine are installed; an operator can remove one"


class VersionInstallFailed(Problem):
    """An install failed; its output goes to the operator's log only."""

    kind = ProblemKind.FAILED
    message = "That version could not be installed; the server's log says why"
