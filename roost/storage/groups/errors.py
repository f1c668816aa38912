"""What can go wrong with groups, in the words that clients show."""

from roost.core.problem import Kind, Problem


class GroupMissing(Problem):
    """There is none of that id on that network, or it is another tenant's: the answer does not tell which."""

    kind = Kind.MISSING
    message = "Group not found"


class InvalidGroup(Problem):
    kind = Kind.INVALID
    message = "Invalid group"
