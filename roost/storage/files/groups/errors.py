"""Errors of groups; clients show the messages."""

from roost.core.problem import InvalidInput, NotFound


class GroupNotFound(NotFound):
    """The group does not exist or belongs to another tenant; the response does not say which."""

    message = "Group not found"


class InvalidGroup(InvalidInput):
    message = "Invalid group"
