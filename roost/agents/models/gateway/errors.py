"""Errors of the model gateway itself; upstream errors are in the drivers' contract. `code` is OpenAI's."""

from roost.core.problem import InvalidInput, NotFound, PayloadTooLarge, Problem, ProblemKind, TooManyRequests


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


class EndpointUnsupported(NotFound):
    def __init__(self, model: str, path: str) -> None:
        super().__init__(
            f"The source of the model `{model}` has no endpoint {path}", extra={"code": "unsupported_endpoint"}
        )


class StoredResponseRefused(InvalidInput):
    def __init__(self, field: str) -> None:
        super().__init__(
            f"`{field}` is not supported: no response is stored, because agents share the provider's key",
            extra={"code": "unsupported_parameter", "param": field},
        )


class TooManyModelRequests(TooManyRequests):
    message = "Too many model requests at once"


class UpstreamTimeout(Problem):
    kind = ProblemKind.TIMED_OUT

    def __init__(self, seconds: float) -> None:
        super().__init__(f"The model gave no output for {seconds:g} s", extra={"code": "timeout"})
