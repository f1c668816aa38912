"""What can go wrong with hot swaps, in the words that clients show."""

from roost.core.problem import Kind, Problem


class InvalidSwap(Problem):
    kind = Kind.INVALID
    message = "Invalid swap"


class SwapMissing(Problem):
    kind = Kind.MISSING
    message = "CID does not have history"
