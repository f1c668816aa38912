"""What can be wrong with content that came from outside."""

from roost.core.problem import Problem, ProblemKind


class MalformedContent(Problem):
    """Bytes that are not what they claim to be; the message says in what they fail."""

    kind = ProblemKind.INVALID
    message = "Malformed content"


class InvalidCid(MalformedContent):
    message = "Invalid CID"


class InvalidEntryName(MalformedContent):
    """A name that no folder may hold."""

    message = "Invalid file name"
