"""Errors of path routes."""

from roost.core.problem import InvalidInput


class InvalidRoutes(InvalidInput):
    message = "Invalid routes"


class AmbiguousPath(InvalidInput):
    """A program could read the path as one that belongs to another route."""

    message = "Ambiguous path"
