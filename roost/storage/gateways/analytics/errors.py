"""Errors of analytics queries."""

from roost.core.problem import InvalidInput


class InvalidAnalyticsPeriod(InvalidInput):
    message = "start_date must not be after end_date"
