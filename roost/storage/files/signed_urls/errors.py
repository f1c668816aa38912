"""Errors of signed URLs; clients show the messages."""

from roost.core.problem import AccessDenied, InvalidInput


class InvalidSignedUrl(InvalidInput):
    message = "Invalid url"


class SignedUrlRefused(AccessDenied):
    """The signature is invalid or belongs to another request."""

    message = "Invalid signature"


class SignedUrlExpired(AccessDenied):
    message = "The signed url is not valid at this time"
