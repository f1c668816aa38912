"""What can be wrong with content that came from outside."""

from roost.core.problem import Kind, Problem


class Malformed(Problem):
    """Bytes that are not what they claim to be; the message says in what they fail."""

    kind = Kind.INVALID
    message = "Malformed content"


class InvalidCid(Malformed):
    message = "Invalid CID"


class InvalidName(Malformed):
    """A name that no folder may hold."""

    message = "Invalid file name"
