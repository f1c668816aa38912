"""What can go wrong with the Pinning Service API's own queries."""

from roost.core.problem import Kind, Problem


class InvalidQuery(Problem):
    kind = Kind.INVALID
    message = "Invalid query"
