"""What can go wrong with scripts (contract, Errors)."""

from roost.core.problem import Kind, Problem


class ScriptLaunchFailed(Problem):
    """The agent has no box that could run them."""

    kind = Kind.FAILED
    message = "Script launch failed"


class BadManifest(Problem):
    """The manifest cannot be read; never raised to a caller, its message is the scripts' reason."""

    kind = Kind.INVALID
    message = "manifest.json cannot be read"
