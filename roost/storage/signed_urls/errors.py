"""Errors of signed URLs; clients show the messages."""

from roost.core.problem import Problem, ProblemKind


class InvalidSignedUrl(Problem):
    kind = ProblemKind.INVALID
    message = "Invalid url"


class SignedUrlRefused(Problem):
    """The signature is invalid or belongs to another request."""

    kind = ProblemKind.FORBIDDEN
    message = "Invalid signature"


class SignedUrlExpired(Problem):
    kind = ProblemKind.FORBIDDEN
    message = "The signed url is not valid at this time"
