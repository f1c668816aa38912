"""Errors of Git access."""

from roost.core.problem import AccessDenied, InvalidInput, PayloadTooLarge, TooManyRequests


class UnknownGitService(AccessDenied):
    """A service that is not offered, or a client of the dumb protocol, which names none."""

    message = "Only git-upload-pack and git-receive-pack are offered; use Git's smart protocol"


class GitBodyTooLarge(PayloadTooLarge):
    message = "The request of Git is larger than 1 GiB"


class InvalidGitBody(InvalidInput):
    message = "The request body is not valid gzip"


class TooManyGitRequests(TooManyRequests):
    message = "Too many Git commands at once"
