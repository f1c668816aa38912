"""What can go wrong with pins by CID, in the words that clients show."""

from roost.core.problem import Problem, ProblemKind


class PinNotFound(Problem):
    kind = ProblemKind.MISSING
    message = "Pin request not found"


class TooManyPins(Problem):
    kind = ProblemKind.LIMITED
    message = "Too many pin requests are waiting"


class TooManyHostNodes(Problem):
    kind = ProblemKind.INVALID
    message = "Too many host nodes"


class ContentNotFoundYet(Problem):
    """Nobody who was asked has it: it is looked for again."""

    kind = ProblemKind.UNAVAILABLE
    message = "The content was not found yet"
