"""Errors of files: the contract's, and others that it does not name."""

from roost.core.problem import (
    InvalidInput,
    NotFound,
    PayloadTooLarge,
    PreconditionFailed,
    ResourceConflict,
    ServiceUnavailable,
)


class InvalidFilePath(InvalidInput):
    message = "Invalid path"


class WorkspaceFileNotFound(NotFound):
    message = "File not found"


class WorkspaceFileUnreadable(InvalidInput):
    """A folder, a pipe, a socket or a device."""

    message = "Not a regular file"


class InvalidFilename(InvalidInput):
    message = "Invalid filename"
    field = "filename"


class InvalidFileContent(InvalidInput):
    message = "Invalid contentBase64"
    field = "contentBase64"


class WorkspaceFileTooLarge(PayloadTooLarge):
    message = "File too large"


class FileExists(ResourceConflict):
    message = "File exists"


class FolderNotEmpty(ResourceConflict):
    message = "Folder not empty"


class NotAFolder(InvalidInput):
    message = "Not a folder"


class FolderTooLarge(InvalidInput):
    """More than 100,000 entries in a folder, or more than 256 nested folders."""

    message = "Folder too large to list"


class FilesNotWatched(ServiceUnavailable):
    """More folders than can be watched."""

    message = "Too many folders to watch"


class AgentDiskFull(ServiceUnavailable):
    message = "Disk full"


class FileNotAsExpected(PreconditionFailed):
    """The file is missing, or another one than the caller knows."""

    message = "The file has changed since it was read: read it again"


class ConditionalWriteUnsupported(ResourceConflict):
    """The container runs since before an update of the server."""

    message = "The agent's container is older than the server: stop the server with its agents, and start it again"


class FileChanged(ServiceUnavailable):
    """The file became shorter while it was sent."""

    message = "The file changed while it was sent"
