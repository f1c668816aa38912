"""Errors of uploads; clients show the messages."""

from roost.core.problem import InvalidInput, PayloadTooLarge


class InvalidUpload(InvalidInput):
    message = "Invalid upload"


class UploadTooLarge(PayloadTooLarge):
    message = "The upload is too large"


class TooManyFiles(PayloadTooLarge):
    message = "Too many files"


class MimeTypeRefused(InvalidUpload):
    """The signed URL does not allow the detected type."""

    message = "Presigned URL does not grant permissions to upload detected MIME type"
