"""What can go wrong with groups, in the words that clients show."""

from roost.core.problem import Problem, ProblemKind


class GroupNotFound(Problem):
    """There is none of that id on that network, or it is another tenant's: the answer does not tell which."""

    kind = ProblemKind.MISSING
    message = "Group not found"


class InvalidGroup(Problem):
    kind = ProblemKind.INVALID
    message = "Invalid group"
