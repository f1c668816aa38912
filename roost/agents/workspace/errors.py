"""Errors of commands and files (contract, Errors)."""

from roost.core.problem import InvalidInput, NotFound, PayloadTooLarge, Problem


class InvalidCommand(InvalidInput):
    """An empty command, or a working directory that is not a folder of the workspace."""

    message = "Invalid command"


class CommandExecutionFailed(Problem):
    message = "Execution failed"


class InvalidFilePath(InvalidInput):
    message = "Invalid path"


class WorkspaceFileNotFound(NotFound):
    message = "File not found"


class WorkspaceFileUnreadable(InvalidInput):
    """A folder, a pipe, a socket or a device."""

    message = "Not a regular file"


class InvalidFilename(InvalidInput):
    message = "Invalid filename"


class InvalidFileContent(InvalidInput):
    message = "Invalid contentBase64"


class WorkspaceFileTooLarge(PayloadTooLarge):
    message = "File too large"
