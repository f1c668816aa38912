"""What can go wrong with files, in the words that clients show."""

from roost.core.problem import Kind, Problem


class FileMissing(Problem):
    kind = Kind.MISSING
    message = "File not found"


class FileThere(Problem):
    """The promised id of a file counts once."""

    kind = Kind.CONFLICT
    message = "The file was uploaded already"


class StorageFull(Problem):
    kind = Kind.TOO_LARGE
    message = "The storage of your plan is full"


class InvalidMetadata(Problem):
    kind = Kind.INVALID
    message = "Invalid metadata"


class NothingToChange(Problem):
    kind = Kind.INVALID
    message = "name, keyvalues or expires_at is required"
