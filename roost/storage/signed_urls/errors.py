"""What can go wrong with signed addresses, in the words that clients show."""

from roost.core.problem import Problem, ProblemKind


class InvalidSignedUrl(Problem):
    kind = ProblemKind.INVALID
    message = "Invalid url"


class SignedUrlRefused(Problem):
    """The signature is not ours, or not for this request."""

    kind = ProblemKind.FORBIDDEN
    message = "Invalid signature"


class SignedUrlExpired(Problem):
    kind = ProblemKind.FORBIDDEN
    message = "The signed url is not valid at this time"
