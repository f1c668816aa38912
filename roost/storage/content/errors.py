"""Errors of content."""

from roost.core.problem import InvalidInput, NotFound, Problem


class ContentNotFound(NotFound):
    """The content is missing or belongs to another tenant; the response does not say which."""

    message = "Content not found"


class EntryNotFound(ContentNotFound):
    """The folder was read and has no entry of this name."""


class ContentDamaged(Problem):
    """The stored bytes do not match their CID and are never served."""

    message = "The stored content is damaged"


class ContentNotAFolder(NotFound):
    message = "Not a folder"


class ContentNotAFile(InvalidInput):
    message = "Not a file"


class TooDeep(InvalidInput):
    message = "The content is nested too deeply"


class TooManyEntries(InvalidInput):
    message = "The folder has too many entries"


class TooManyShards(InvalidInput):
    """A crafted folder of empty shards, whose walk would not end; regular folders have an entry every few shards."""

    message = "The folder has too many empty shards"


class InvalidByteRange(InvalidInput):
    message = "entity-bytes must be like 0:*, 0:1023 or -1024:*"


class TooManyBlocks(InvalidInput):
    message = "The content has too many blocks for one CAR"


class TooManyArchiveMembers(InvalidInput):
    message = "The folder has too many files for one tar"


class NotArchivable(InvalidInput):
    """An entry is neither a file nor a folder, or its name is unsafe to unpack."""

    message = "The folder has an entry that a tar cannot hold"
