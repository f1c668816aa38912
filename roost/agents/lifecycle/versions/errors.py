"""Errors of versions (contract, Errors)."""

from roost.core.problem import AccessDenied, InvalidInput, Problem


class InvalidEngineVersion(InvalidInput):
    """The engine has no such version."""

    message = "Invalid version"


class TooManyEngineVersions(AccessDenied):
    message = "Too many versions of this engine are installed; an operator can remove one"


class VersionInstallFailed(Problem):
    """An install failed; its output goes to the operator's log only."""

    message = "That version could not be installed; the server's log says why"
