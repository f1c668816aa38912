"""Errors of usage reports."""

from roost.core.problem import InvalidInput


class InvalidUsagePeriod(InvalidInput):
    message = "The period must not end before it begins, and have at most 366 days"
