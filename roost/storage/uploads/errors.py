"""Errors of uploads; clients show the messages."""

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
    """The signed URL does not allow the detected type."""

    message = "Presigned URL does not grant permissions to upload detected MIME type"
