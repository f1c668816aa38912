"""Errors of resumable uploads; clients show the messages."""

from roost.core.problem import Problem, ProblemKind


class TusUploadNotFound(Problem):
    """The upload does not exist, was terminated, has expired, or has another token."""

    kind = ProblemKind.MISSING
    message = "Upload not found"


class InvalidTusUpload(Problem):
    kind = ProblemKind.INVALID
    message = "Invalid upload"


class UploadOffsetMismatch(Problem):
    """The part begins at another offset than `offset`, or another part is being received."""

    kind = ProblemKind.CONFLICT
    message = "Upload-Offset is not where the upload is"

    def __init__(self, offset: int, cid: str | None = None) -> None:
        super().__init__()
        self.offset = offset
        self.cid = cid


class TooManyTusUploads(Problem):
    kind = ProblemKind.LIMITED
    message = "Too many unfinished uploads"
