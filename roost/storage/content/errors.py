"""What can go wrong with content."""

from roost.core.problem import Problem, ProblemKind


class ContentNotFound(Problem):
    """Not here, or not for this caller: nobody is told which."""

    kind = ProblemKind.MISSING
    message = "Content not found"


class ContentDamaged(Problem):
    """What is stored is not what its CID says. It is never served."""

    kind = ProblemKind.FAILED
    message = "The stored content is damaged"


class ContentNotAFolder(Problem):
    kind = ProblemKind.MISSING
    message = "Not a folder"


class ContentNotAFile(Problem):
    kind = ProblemKind.INVALID
    message = "Not a file"


class TooDeep(Problem):
    kind = ProblemKind.INVALID
    message = "The content is nested too deeply"


class TooManyShards(Problem):
    """Honest folders have an entry every few shards; others could be walked for ever."""

    kind = ProblemKind.INVALID
    message = "The folder has too many empty shards"


class InvalidByteRange(Problem):
    kind = ProblemKind.INVALID
    message = "entity-bytes must be like 0:*, 0:1023 or -1024:*"


class TooManyBlocks(Problem):
    kind = ProblemKind.INVALID
    message = "The content has too many blocks for one CAR"


class TooManyArchiveMembers(Problem):
    kind = ProblemKind.INVALID
    message = "The folder has too many files for one tar"


class NotArchivable(Problem):
    """Something in it is neither a file nor a folder, or has a name that leads elsewhere."""

    kind = ProblemKind.INVALID
    message = "The folder holds what no tar may hold"
