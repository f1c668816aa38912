"""Errors of resumable uploads; clients show the messages."""

from roost.core.problem import InvalidInput, NotFound, ResourceConflict, ServiceUnavailable, TooManyRequests


class TusUploadNotFound(NotFound):
    """The upload does not exist, was terminated, has expired, or has another token."""

    message = "Upload not found"


class InvalidTusUpload(InvalidInput):
    message = "Invalid upload"


class UploadOffsetMismatch(ResourceConflict):
    """The part begins at another offset than `offset`, or another part is being received."""

    message = "Upload-Offset is not where the upload is"

    def __init__(self, offset: int, cid: str | None = None) -> None:
        super().__init__()
        self.offset = offset
        self.cid = cid


class TooManyTusUploads(TooManyRequests):
    message = "Too many unfinished uploads"


class UploadNotHere(ServiceUnavailable):
    """Unfinished bytes are on the disk of the server that received them, which a load balancer has to know."""

    message = "The bytes of this upload are on another server or lost; all its parts must go to one server"
