"""Errors of commands (contract, Errors)."""

from roost.core.problem import InvalidInput, Problem


class InvalidCommand(InvalidInput):
    """An empty command, or a working directory that is not a folder of the workspace."""

    message = "Invalid command"


class CommandExecutionFailed(Problem):
    message = "Execution failed"
