"""Errors of groups; clients show the messages."""

from roost.core.problem import Problem, ProblemKind


class GroupNotFound(Problem):
    """The group does not exist or belongs to another tenant; the response does not say which."""

    kind = ProblemKind.MISSING
    message = "Group not found"


class InvalidGroup(Problem):
    kind = ProblemKind.INVALID
    message = "Invalid group"
