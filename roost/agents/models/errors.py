"""What the model gateway itself says no to; what upstreams say stands in their contract. `code` is OpenAI's."""

from roost.core.problem import InvalidInput, NotFound, PayloadTooLarge, ServiceUnavailable, TooManyRequests


class ModelBodyTooLarge(PayloadTooLarge):
    message = "Request body too large"


class ModelBodyTooSlow(InvalidInput):
    message = "The request body did not arrive in time"


class ClientDisconnected(InvalidInput):
    """Nobody reads this; it is for the log."""

    message = "The client went away before the answer"


class UnknownModel(NotFound):
    def __init__(self, model: str) -> None:
        super().__init__(f"The model `{model}` does not exist", extra={"code": "model_not_found"})


class TooManyModelRequests(TooManyRequests):
    message = "Too many model requests at once"


class UpstreamTimeout(ServiceUnavailable):
    message = "The model gave no output in time"
