"""What can go wrong with questions about what gateways served."""

from roost.core.problem import Problem, ProblemKind


class InvalidAnalyticsPeriod(Problem):
    kind = ProblemKind.INVALID
    message = "start_date must not be after end_date"
