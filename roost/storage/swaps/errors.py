"""Errors of hot swaps; clients show the messages."""

from roost.core.problem import Problem, ProblemKind


class InvalidSwap(Problem):
    kind = ProblemKind.INVALID
    message = "Invalid swap"


class SwapNotFound(Problem):
    kind = ProblemKind.MISSING
    message = "CID does not have history"
