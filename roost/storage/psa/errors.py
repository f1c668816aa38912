"""What can go wrong with the Pinning Service API's own queries."""

from roost.core.problem import Problem, ProblemKind


class InvalidPinQuery(Problem):
    kind = ProblemKind.INVALID
    message = "Invalid query"
