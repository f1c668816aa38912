"""What can go wrong with hot swaps, in the words that clients show."""

from roost.core.problem import Problem, ProblemKind


class InvalidSwap(Problem):
    kind = ProblemKind.INVALID
    message = "Invalid swap"


class SwapNotFound(Problem):
    kind = ProblemKind.MISSING
    message = "CID does not have history"
