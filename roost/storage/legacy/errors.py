"""What can go wrong with the older API, in the words that its clients know."""

from roost.core.problem import Kind, Limited, Problem


class NotPinned(Problem):
    kind = Kind.INVALID
    message = "The current user has not pinned the provided CID"

    def __init__(self) -> None:
        super().__init__(extra={"reason": "CURRENT_USER_HAS_NOT_PINNED_CID"})


class InvalidRequest(Problem):
    kind = Kind.INVALID
    message = "Invalid JSON body"


class TooManyAtOnce(Limited):
    message = "Too many large bodies at once"
