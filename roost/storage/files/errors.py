"""Errors of files; clients show the messages."""

from roost.core.problem import Problem, ProblemKind


class FileNotFound(Problem):
    kind = ProblemKind.MISSING
    message = "File not found"


class FileIdTaken(Problem):
    """A reserved file id can be used once."""

    kind = ProblemKind.CONFLICT
    message = "The file was uploaded already"


class StorageQuotaExceeded(Problem):
    kind = ProblemKind.TOO_LARGE
    message = "The storage of your plan is full"


class InvalidFileMetadata(Problem):
    kind = ProblemKind.INVALID
    message = "Invalid metadata"


class EmptyFileUpdate(Problem):
    kind = ProblemKind.INVALID
    message = "name, keyvalues or expires_at is required"
