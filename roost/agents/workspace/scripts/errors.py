"""Errors of scripts (contract, Errors)."""

from roost.core.problem import InvalidInput, Problem


class ScriptLaunchFailed(Problem):
    """The agent has no container to run scripts in."""

    message = "Script launch failed"


class InvalidManifest(InvalidInput):
    """The manifest cannot be read. Callers never get this error; its message becomes the scripts' reason."""

    message = "manifest.json cannot be read"
