"""Errors of a container's warden and of the connection to it (`docs/builders/warden-protocol.md`)."""

from collections.abc import Mapping

from roost.core.problem import (
    InvalidInput,
    NotFound,
    PayloadTooLarge,
    Problem,
    ProblemKind,
    ResourceConflict,
    ServiceUnavailable,
    TooManyRequests,
)


class ContainerNotRunning(ServiceUnavailable):
    """The agent has no running container."""

    message = "The agent's container is not running"


class DialRefused(ServiceUnavailable):
    message = "Nothing listens on that port of the agent"


class PathRefused(InvalidInput):
    """The path is malformed, or it leads out of its root."""

    message = "Invalid path"


class WardenFileNotFound(NotFound):
    message = "File not found"


class WardenNotAFile(InvalidInput):
    """A folder instead of a file or the reverse, or a FIFO, device or socket."""

    message = "Not a file"


class WardenFileTooLarge(PayloadTooLarge):
    message = "The file is larger than it may be"


class WardenFileExists(ResourceConflict):
    """The target of a move exists."""

    message = "File exists"


class WardenFolderNotEmpty(ResourceConflict):
    message = "Folder not empty"


class WardenTooManyEntries(InvalidInput):
    """A folder has more than 100,000 entries, or folders are nested deeper than 256."""

    message = "The folder is too large to list"


class WardenTreeChanged(ResourceConflict):
    """A path to change is not as the request expects it; nothing has changed."""

    message = "The files of the agent have changed"


class WardenWatchRefused(ServiceUnavailable):
    """The tree has too many folders for watches, or the kernel has none left."""

    message = "The files of the agent cannot be watched"


class WardenDiskFull(ServiceUnavailable):
    message = "The disk of the agent is full"


class ExecRefused(InvalidInput):
    """No command, no such program, or a working directory that is missing or outside the workspace."""

    message = "The command cannot be started"


class ProcessAlreadyRunning(ResourceConflict):
    message = "A process of that name is running"


class WardenBusy(TooManyRequests):
    """The container has reached a limit of concurrent work."""

    message = "The agent is busy"


class WardenFailed(Problem):
    """The warden broke the protocol or failed."""

    message = "The agent's container gave no usable answer"


class WardenTimedOut(WardenFailed):
    """The warden did not answer in time, usually because the machine or the container is overloaded."""

    kind = ProblemKind.UNAVAILABLE
    message = "The agent's container did not answer in time"


class WardenRequestUnknown(WardenFailed):
    """The warden does not know the operation: its container runs since before an update of the server."""

    message = "The agent's container does not know the request"


class WardenTerminalNotFound(NotFound):
    message = "Terminal not found"


class WardenTerminalTaken(ResourceConflict):
    """Another client has connected to the terminal."""

    message = "Another client has taken the terminal"


class WardenDisconnected(WardenFailed):
    """The connection ended within a reply, usually because the container did."""

    kind = ProblemKind.UNAVAILABLE
    message = "The agent's container ended before its answer was complete"


PROBLEMS: Mapping[str, type[Problem]] = {
    "dialRefused": DialRefused,
    "pathRefused": PathRefused,
    "fileMissing": WardenFileNotFound,
    "notAFile": WardenNotAFile,
    "fileTooLarge": WardenFileTooLarge,
    "fileExists": WardenFileExists,
    "folderNotEmpty": WardenFolderNotEmpty,
    "tooMany": WardenTooManyEntries,
    "diskFull": WardenDiskFull,
    "treeChanged": WardenTreeChanged,
    "watchRefused": WardenWatchRefused,
    "execRefused": ExecRefused,
    "running": ProcessAlreadyRunning,
    "busy": WardenBusy,
    "noTerminal": WardenTerminalNotFound,
    "displaced": WardenTerminalTaken,
    "badRequest": WardenRequestUnknown,
}
"""Error codes of the protocol; others are WardenFailed."""
