"""What can go wrong with pins by CID, in the words that clients show."""

from roost.core.problem import Kind, Problem


class PinMissing(Problem):
    kind = Kind.MISSING
    message = "Pin request not found"


class TooManyPins(Problem):
    kind = Kind.LIMITED
    message = "Too many pin requests are waiting"


class TooManyHosts(Problem):
    kind = Kind.INVALID
    message = "Too many host nodes"


class NotFoundYet(Problem):
    """Nobody who was asked has it: it is looked for again."""

    kind = Kind.UNAVAILABLE
    message = "The content was not found yet"
