"""Errors of the model gateway itself; upstream errors are in the drivers' contract. `code` is OpenAI's."""

from roost.core.problem import InvalidInput, NotFound, PayloadTooLarge, ServiceUnavailable, TooManyRequests


class ModelBodyTooLarge(PayloadTooLarge):
    message = "Request body too large"


class ModelBodyTooSlow(InvalidInput):
    message = "The request body did not arrive in time"


class ClientDisconnected(InvalidInput):
    """The client receives no response; the message is for the log."""

    message = "The client disconnected before the response"


class UnknownModel(NotFound):
    def __init__(self, model: str) -> None:
        super().__init__(f"The model `{model}` does not exist", extra={"code": "model_not_found"})


class TooManyModelRequests(TooManyRequests):
    message = "Too many model requests at once"


class UpstreamTimeout(ServiceUnavailable):
    message = "The model gave no output in time"
