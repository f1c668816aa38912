"""What can go wrong with files, in the words that clients show."""

from roost.core.problem import Kind, Problem


class FileMissing(Problem):
    kind = Kind.MISSING
    message = "File not found"


class GroupMissing(Problem):
    kind = Kind.MISSING
    message = "Group not found"


class InvalidMetadata(Problem):
    kind = Kind.INVALID
    message = "Invalid metadata"


class InvalidPage(Problem):
    kind = Kind.INVALID
    message = "Invalid pageToken"
