"""Errors of the Pinning Service API."""

from roost.core.problem import Problem, ProblemKind


class InvalidPinQuery(Problem):
    kind = ProblemKind.INVALID
    message = "Invalid query"
