"""What can go wrong with uploads, in the words that clients show."""

from roost.core.problem import Problem, ProblemKind


class InvalidUpload(Problem):
    kind = ProblemKind.INVALID
    message = "Invalid upload"


class UploadTooLarge(Problem):
    kind = ProblemKind.TOO_LARGE
    message = "The upload is too large"


class TooManyFiles(Problem):
    kind = ProblemKind.TOO_LARGE
    message = "Too many files"


class MimeTypeRefused(InvalidUpload):
    """A signed address says which types may be uploaded."""

    message = "Presigned URL does not grant permissions to upload detected MIME type"
