"""What can go wrong with questions about what gateways served."""

from roost.core.problem import Kind, Problem


class InvalidPeriod(Problem):
    kind = Kind.INVALID
    message = "start_date must not be after end_date"
