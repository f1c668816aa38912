"""What can go wrong with scripts (contract, Errors)."""

from roost.core.problem import Problem, ProblemKind


class ScriptLaunchFailed(Problem):
    """The agent has no box that could run them."""

    kind = ProblemKind.FAILED
    message = "Script launch failed"


class InvalidManifest(Problem):
    """The manifest cannot be read; never raised to a caller, its message is the scripts' reason."""

    kind = ProblemKind.INVALID
    message = "manifest.json cannot be read"
