"""Errors of files; clients show the messages."""

from roost.core.problem import InvalidInput, NotFound, PayloadTooLarge, ResourceConflict


class FileNotFound(NotFound):
    message = "File not found"


class FileIdTaken(ResourceConflict):
    """A reserved file id can be used once."""

    message = "The file was uploaded already"


class StorageQuotaExceeded(PayloadTooLarge):
    message = "The storage of your plan is full"


class InvalidFileMetadata(InvalidInput):
    message = "Invalid metadata"


class EmptyFileUpdate(InvalidInput):
    message = "name, keyvalues or expires_at is required"
