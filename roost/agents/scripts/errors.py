"""Errors of scripts (contract, Errors)."""

from roost.core.problem import Problem, ProblemKind


class ScriptLaunchFailed(Problem):
    """The agent has no container to run scripts in."""

    kind = ProblemKind.FAILED
    message = "Script launch failed"


class InvalidManifest(Problem):
    """The manifest cannot be read. Callers never get this error; its message becomes the scripts' reason."""

    kind = ProblemKind.INVALID
    message = "manifest.json cannot be read"
