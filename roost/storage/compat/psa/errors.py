"""Errors of the Pinning Service API."""

from roost.core.problem import InvalidInput


class InvalidPinQuery(InvalidInput):
    message = "Invalid query"
