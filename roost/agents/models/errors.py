"""What the model gateway itself says no to; what upstreams say stands in their contract. `code` is OpenAI's."""

from roost.core.problem import Invalid, Limited, Missing, TooLarge, Unavailable


class BodyTooLarge(TooLarge):
    message = "Request body too large"


class BodyTooSlow(Invalid):
    message = "The request body did not arrive in time"


class ClientGone(Invalid):
    """Nobody reads this; it is for the log."""

    message = "The client went away before the answer"


class UnknownModel(Missing):
    def __init__(self, model: str) -> None:
        super().__init__(f"The model `{model}` does not exist", extra={"code": "model_not_found"})


class TooManyAtOnce(Limited):
    message = "Too many model requests at once"


class Silent(Unavailable):
    message = "The model gave no output in time"
