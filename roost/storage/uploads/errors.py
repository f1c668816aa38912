"""What can go wrong with uploads, in the words that clients show."""

from roost.core.problem import Kind, Problem


class InvalidUpload(Problem):
    kind = Kind.INVALID
    message = "Invalid upload"


class UploadTooLarge(Problem):
    kind = Kind.TOO_LARGE
    message = "The upload is too large"


class TooManyFiles(Problem):
    kind = Kind.TOO_LARGE
    message = "Too many files"


class TypeRefused(InvalidUpload):
    """A signed address says which types may be uploaded."""

    message = "Presigned URL does not grant permissions to upload detected MIME type"
