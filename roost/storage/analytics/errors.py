"""Errors of analytics queries."""

from roost.core.problem import Problem, ProblemKind


class InvalidAnalyticsPeriod(Problem):
    kind = ProblemKind.INVALID
    message = "start_date must not be after end_date"
