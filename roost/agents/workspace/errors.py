"""Errors of commands and files (contract, Errors)."""

from roost.core.problem import Problem, ProblemKind


class InvalidCommand(Problem):
    """An empty command, or a working directory that is not a folder of the workspace."""

    kind = ProblemKind.INVALID
    message = "Invalid command"


class CommandExecutionFailed(Problem):
    kind = ProblemKind.FAILED
    message = "Execution failed"


class InvalidFilePath(Problem):
    kind = ProblemKind.INVALID
    message = "Invalid path"


class WorkspaceFileNotFound(Problem):
    kind = ProblemKind.MISSING
    message = "File not found"


class WorkspaceFileUnreadable(Problem):
    """A folder, a pipe, a socket or a device."""

    kind = ProblemKind.INVALID
    message = "Not a regular file"


class InvalidFilename(Problem):
    kind = ProblemKind.INVALID
    message = "Invalid filename"


class InvalidFileContent(Problem):
    kind = ProblemKind.INVALID
    message = "Invalid contentBase64"


class WorkspaceFileTooLarge(Problem):
    kind = ProblemKind.TOO_LARGE
    message = "File too large"
