"""What can go wrong with uploads in parts, in the words that clients show."""

from roost.core.problem import Problem, ProblemKind


class TusUploadNotFound(Problem):
    """Never was, was ended, is over, or the token is not the right one."""

    kind = ProblemKind.MISSING
    message = "Upload not found"


class InvalidTusUpload(Problem):
    kind = ProblemKind.INVALID
    message = "Invalid upload"


class UploadOffsetMismatch(Problem):
    """The part does not begin where the upload is, or another part is being taken. `offset` is where it is."""

    kind = ProblemKind.CONFLICT
    message = "Upload-Offset is not where the upload is"

    def __init__(self, offset: int, cid: str | None = None) -> None:
        super().__init__()
        self.offset = offset
        self.cid = cid


class TooManyTusUploads(Problem):
    kind = ProblemKind.LIMITED
    message = "Too many unfinished uploads"
