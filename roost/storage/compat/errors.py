"""Errors of the pinning API from before `/v3`, with the texts and reasons that its clients parse."""

from roost.core.problem import InvalidInput, TooManyRequests


class PinNotFoundByCid(InvalidInput):
    message = "The current user has not pinned the provided CID"

    def __init__(self) -> None:
        super().__init__(extra={"reason": "CURRENT_USER_HAS_NOT_PINNED_CID"})


class InvalidLegacyRequest(InvalidInput):
    message = "Invalid JSON body"


class TooManyJsonPins(TooManyRequests):
    message = "Too many large bodies at once"
