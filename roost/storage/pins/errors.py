"""Errors of pins by CID; clients show the messages."""

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
    """No source has the content; the retrieval is retried."""

    kind = ProblemKind.UNAVAILABLE
    message = "The content was not found yet"
