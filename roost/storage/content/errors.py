"""Errors of content."""

from roost.core.problem import Problem, ProblemKind


class ContentNotFound(Problem):
    """The content is missing or belongs to another tenant; the response does not say which."""

    kind = ProblemKind.MISSING
    message = "Content not found"


class ContentDamaged(Problem):
    """The stored bytes do not match their CID and are never served."""

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
    """A crafted folder of empty shards, whose walk would not end; regular folders have an entry every few shards."""

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
    """An entry is neither a file nor a folder, or its name is unsafe to unpack."""

    kind = ProblemKind.INVALID
    message = "The folder has an entry that a tar cannot hold"
