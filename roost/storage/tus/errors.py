"""What can go wrong with uploads in parts, in the words that clients show."""

from roost.core.problem import Kind, Problem


class TransferMissing(Problem):
    """Never was, was ended, is over, or the token is not the right one."""

    kind = Kind.MISSING
    message = "Upload not found"


class InvalidTransfer(Problem):
    kind = Kind.INVALID
    message = "Invalid upload"


class OutOfStep(Problem):
    """The part does not begin where the upload is, or another part is being taken. `offset` is where it is."""

    kind = Kind.CONFLICT
    message = "Upload-Offset is not where the upload is"

    def __init__(self, offset: int, cid: str | None = None) -> None:
        super().__init__()
        self.offset = offset
        self.cid = cid


class TooManyTransfers(Problem):
    kind = Kind.LIMITED
    message = "Too many unfinished uploads"
