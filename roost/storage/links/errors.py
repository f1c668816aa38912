"""What can go wrong with signed addresses, in the words that clients show."""

from roost.core.problem import Kind, Problem


class InvalidLink(Problem):
    kind = Kind.INVALID
    message = "Invalid url"


class LinkRefused(Problem):
    """The signature is not ours, or not for this request."""

    kind = Kind.FORBIDDEN
    message = "Invalid signature"


class LinkExpired(Problem):
    kind = Kind.FORBIDDEN
    message = "The signed url is not valid at this time"
