"""What can go wrong with content."""

from roost.core.problem import Kind, Problem


class ContentMissing(Problem):
    """Not here, or not for this caller: nobody is told which."""

    kind = Kind.MISSING
    message = "Content not found"


class ContentDamaged(Problem):
    """What is stored is not what its CID says. It is never served."""

    kind = Kind.FAILED
    message = "The stored content is damaged"


class NotAFolder(Problem):
    kind = Kind.MISSING
    message = "Not a folder"


class NotAFile(Problem):
    kind = Kind.INVALID
    message = "Not a file"


class TooDeep(Problem):
    kind = Kind.INVALID
    message = "The content is nested too deeply"


class TooManyShards(Problem):
    """Honest folders have an entry every few shards; others could be walked for ever."""

    kind = Kind.INVALID
    message = "The folder has too many empty shards"


class InvalidSpan(Problem):
    kind = Kind.INVALID
    message = "entity-bytes must be like 0:*, 0:1023 or -1024:*"


class TooManyBlocks(Problem):
    kind = Kind.INVALID
    message = "The content has too many blocks for one CAR"


class TooManyMembers(Problem):
    kind = Kind.INVALID
    message = "The folder has too many files for one tar"


class NotArchivable(Problem):
    """Something in it is neither a file nor a folder, or has a name that leads elsewhere."""

    kind = Kind.INVALID
    message = "The folder holds what no tar may hold"
