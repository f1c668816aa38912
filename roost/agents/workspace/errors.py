"""What can go wrong with commands and files (contract, Errors)."""

from roost.core.problem import Kind, Problem


class InvalidCommand(Problem):
    """An empty command, or a working directory that is not a folder of the workspace."""

    kind = Kind.INVALID
    message = "Invalid command"


class ExecutionFailed(Problem):
    kind = Kind.FAILED
    message = "Execution failed"


class InvalidPath(Problem):
    kind = Kind.INVALID
    message = "Invalid path"


class NoSuchFile(Problem):
    kind = Kind.MISSING
    message = "File not found"


class NotReadable(Problem):
    """A folder, a pipe, a socket or a device."""

    kind = Kind.INVALID
    message = "Not a regular file"


class InvalidFilename(Problem):
    kind = Kind.INVALID
    message = "Invalid filename"


class InvalidContent(Problem):
    kind = Kind.INVALID
    message = "Invalid contentBase64"


class FileTooLarge(Problem):
    kind = Kind.TOO_LARGE
    message = "File too large"
