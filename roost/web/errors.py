"""The one table that turns a kind of problem into a status, and the error bodies of both APIs.

`/v0` answers `{"error": string}` (the contract's Errors section); `/v3` `{"error": {"code", "message"}}` and the old
storage paths `{"error": {"reason", "details"}}`, the forms that storage clients read; the model gateway OpenAI's own
form, for OpenAI's clients.
"""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError, ValidationException, WebSocketRequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.routing import iter_route_contexts
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match, Route

from roost.core.problem import Problem, ProblemKind

STATUS: Mapping[ProblemKind, int] = {
    ProblemKind.INVALID: 400,
    ProblemKind.UNAUTHORISED: 401,
    ProblemKind.FORBIDDEN: 403,
    ProblemKind.MISSING: 404,
    ProblemKind.CONFLICT: 409,
    ProblemKind.TOO_LARGE: 413,
    ProblemKind.LIMITED: 429,
    ProblemKind.FAILED: 500,
    ProblemKind.UNAVAILABLE: 503,
}

CLIENT_LEFT = 499
"""What is noted of a request whose client did not wait for an answer."""

_HTTP_MESSAGES = {
    404: "Not found",
    405: "Method not allowed",
    413: "Request body too large",
    415: "Unsupported media type",
}


_LEGACY = ("/pinning/", "/data/", "/users/", "/groups", "/psa/")
_REASONS = {
    401: "INVALID_CREDENTIALS",
    403: "NO_SCOPES_FOUND",
    404: "NOT_FOUND",
    413: "TOO_LARGE",
    429: "RATE_LIMITED",
    500: "INTERNAL_ERROR",
    503: "UNAVAILABLE",
}
_NO_OBJECT = frozenset({"missing", "model_attributes_type", "model_type"})
_OPENAI_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def install(app: FastAPI) -> None:
    """Make every failure of `app` answer in the contract's form."""
    app.add_exception_handler(Problem, _problem)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(WebSocketRequestValidationError, _validation)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RecursionError, _too_deep)
    app.add_exception_handler(ClientDisconnect, _left)
    app.add_exception_handler(Exception, _unexpected)


def body(path: str, status: int, message: str, extra: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The error body of the API that `path` belongs to."""
    message = message.encode(errors="replace").decode()  # it may repeat half of a surrogate pair, which no answer can
    if path.startswith("/v0/llm/v1"):
        kind = _OPENAI_TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
        return {"error": {"message": message, "type": kind, "param": None, "code": None, **(extra or {})}}
    if path.startswith("/v3"):
        return {"error": {"code": status, "message": message}}
    if path.startswith(_LEGACY):
        return {"error": {"reason": _REASONS.get(status, "INVALID_REQUEST"), "details": message, **(extra or {})}}
    return {"error": message, **(extra or {})}


def answer(path: str, problem: Problem) -> JSONResponse:
    """The response for a problem, with `Retry-After` and `WWW-Authenticate` where they belong."""
    status = STATUS[problem.kind]
    headers: dict[str, str] = {}
    if problem.retry_after is not None:
        headers["Retry-After"] = str(max(1, round(problem.retry_after)))
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse(body(path, status, problem.message, problem.extra), status, headers)


async def _problem(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Problem)
    return answer(request.url.path, error)


async def _validation(request: Request, error: Exception) -> JSONResponse:
    """400 that names the first field at fault; the value itself is never repeated."""
    assert isinstance(error, ValidationException)
    return JSONResponse(body(request.url.path, 400, _first_fault(error)), 400)


def _first_fault(error: ValidationException) -> str:
    fault = error.errors()[0]
    if fault["type"] == "json_invalid":
        return "Invalid JSON body"
    if tuple(fault["loc"]) == ("body",) and fault["type"] in _NO_OBJECT:
        return "The body must be a JSON object, sent with Content-Type: application/json"
    where = ".".join(str(part) for part in fault["loc"][1:])
    message = _length(fault) or str(fault["msg"]).removeprefix("Value error, ")
    return f"{where}: {message}" if where else message


def _length(fault: Mapping[str, Any]) -> str:
    """Of text that was looked at before it was measured, which the framework takes for a list of items."""
    context = fault.get("ctx", {})
    if context.get("field_type") != "Value":
        return ""
    bound, side = ("min_length", "least") if fault["type"] == "too_short" else ("max_length", "most")
    count = context[bound]
    return f"must have at {side} {count} character{'' if count == 1 else 's'}"


async def _too_deep(request: Request, _error: Exception) -> JSONResponse:
    """JSON nested so deeply that one of its readers gave up."""
    return JSONResponse(body(request.url.path, 400, "Invalid JSON body"), 400)


async def _left(_request: Request, _error: Exception) -> Response:
    """For the log alone: nobody is there to read it."""
    return Response(status_code=CLIENT_LEFT)


async def _unexpected(request: Request, _error: Exception) -> JSONResponse:
    """The plain 500; `web/envelope.py` logs what happened."""
    return JSONResponse(body(request.url.path, 500, "Internal error"), 500)


async def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    message = _HTTP_MESSAGES.get(error.status_code, "Bad request")
    headers = dict(error.headers or {})
    if error.status_code == 405:
        headers["Allow"] = ", ".join(sorted(_methods(request)))
    return JSONResponse(body(request.url.path, error.status_code, message), error.status_code, headers)


def _methods(request: Request) -> set[str]:
    """All that the path takes (RFC 9110, 10.2.1): the router itself tells those of one of its routes."""
    routes = [context.original_route for context in iter_route_contexts(request.app.routes)]
    fitting = [route for route in routes if route.matches(request.scope)[0] is not Match.NONE]
    return {method for route in fitting if isinstance(route, Route) for method in route.methods or ()}
