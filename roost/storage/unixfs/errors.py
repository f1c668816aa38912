"""Errors of content from clients and the network."""

from roost.core.problem import Problem, ProblemKind


class MalformedContent(Problem):
    """Bytes that violate their format; the message gives the reason."""

    kind = ProblemKind.INVALID
    message = "Malformed content"


class InvalidCid(MalformedContent):
    message = "Invalid CID"


class InvalidEntryName(MalformedContent):
    """A name that is not allowed in a folder."""

    message = "Invalid file name"
