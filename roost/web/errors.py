"""Turn problems into responses: the one table of statuses, and the error bodies of each API."""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError, ValidationException, WebSocketRequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from fastapi.routing import iter_route_contexts
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Scope

from roost.core.problem import (
    AccessDenied,
    InvalidInput,
    NotFound,
    PayloadTooLarge,
    PreconditionFailed,
    Problem,
    ProblemKind,
    TooManyRequests,
    error_code,
)
from roost.core.rate_limit import RateLimitExceeded
from roost.web.rate_limit_fields import exceeded_headers
from roost.web.url_rule import ErrorForm, address_of, rule_of

STATUS: Mapping[ProblemKind, int] = {
    ProblemKind.INVALID: 400,
    ProblemKind.UNAUTHORISED: 401,
    ProblemKind.FORBIDDEN: 403,
    ProblemKind.MISSING: 404,
    ProblemKind.CONFLICT: 409,
    ProblemKind.PRECONDITION: 412,
    ProblemKind.TOO_LARGE: 413,
    ProblemKind.LIMITED: 429,
    ProblemKind.FAILED: 500,
    ProblemKind.UNAVAILABLE: 503,
    ProblemKind.TIMED_OUT: 504,
}

CLIENT_LEFT = 499
"""Status in the access log of a request whose client left before the response."""

ERROR_DETAIL = "X-Error-Detail"
"""Header with what is wrong about a 400, and more about messages that the contract fixes: a JSON string, in ASCII."""
_DETAIL_CHARACTERS = 600  # at most 3.6 KB in the header; proxies accept 4
ERROR_CODE = "X-Error-Code"
"""Header with the stable name of an error (`error_code`)."""
ERROR_FIELD = "X-Error-Field"
"""Header with the path of the field at fault, such as `mappings.0.port`."""
_FIELD_CHARACTERS = 200
_STATUS_CODES = {
    **{
        STATUS[problem.kind]: error_code(problem)
        for problem in (
            Problem,
            InvalidInput,
            AccessDenied,
            NotFound,
            PayloadTooLarge,
            PreconditionFailed,
            TooManyRequests,
        )
    },
    401: "unauthorised",
    416: "range_not_satisfiable",  # the name in `HTTPStatus` depends on the version of Python
}

F = TypeVar("F", bound=Callable[..., Any])

_HTTP_MESSAGES = {
    404: "Not found",
    405: "Method not allowed",
    413: "Request body too large",
    415: "Unsupported media type",
}

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
_body_problems: dict[object, tuple[type[Problem], tuple[str, ...]]] = {}
_OPENAI_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def refuse_body_with(problem: type[Problem], *fields: str) -> Callable[[F], F]:
    """Answer `problem` to a malformed body of the decorated handler, and to malformed values of these fields of it.

    The contract has one message for all of them; what is malformed is in the header `X-Error-Detail`.
    """

    def register(handler: F) -> F:
        _body_problems[handler] = problem, fields
        return handler

    return register


def install_error_handlers(app: FastAPI) -> None:
    """Answer every failure of `app` in the error form of its URL."""
    app.add_exception_handler(Problem, _problem)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(WebSocketRequestValidationError, _validation)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RecursionError, _too_deep)
    app.add_exception_handler(ClientDisconnect, _left)
    app.add_exception_handler(Exception, _unexpected)


def error_body(form: ErrorForm, status: int, message: str, extra: Mapping[str, Any] | None = None) -> dict[str, Any]:
    message = message.encode(errors="replace").decode()  # half of a surrogate pair cannot be encoded
    match form:
        case ErrorForm.OPENAI:
            kind = _OPENAI_TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
            return {"error": {"message": message, "type": kind, "param": None, "code": None, **(extra or {})}}
        case ErrorForm.STORAGE:
            return {"error": {"code": status, "message": message}}
        case ErrorForm.LEGACY:
            return {"error": {"reason": _REASONS.get(status, "INVALID_REQUEST"), "details": message, **(extra or {})}}
        case ErrorForm.AGENTS | ErrorForm.TEXT:
            return {"error": message, **(extra or {})}


def error_response(scope: Scope, status: int, message: str, *, headers: Mapping[str, str] | None = None) -> Response:
    """Return a response with an error body in the form of the request's URL."""
    return status_response(rule_of(scope).errors, status, message, headers)


def status_response(
    form: ErrorForm, status: int, message: str, headers: Mapping[str, str] | None = None, code: str | None = None
) -> Response:
    """Return an error that is no Problem; its code is its status's if there is none."""
    return _render(form, status, message, {ERROR_CODE: code or status_code(status), **(headers or {})})


def status_code(status: int) -> str:
    """Return the code of errors that are no Problems: the general one of their status."""
    return _STATUS_CODES.get(status) or HTTPStatus(status).name.lower()


def problem_response(form: ErrorForm, problem: Problem) -> Response:
    """Return the response for a problem, with `Retry-After`, `RateLimit` and `WWW-Authenticate` where they apply."""
    status = STATUS[problem.kind]
    headers = problem_headers(problem)
    if isinstance(problem, RateLimitExceeded):
        headers |= exceeded_headers(problem)
    if status == 401:
        headers["WWW-Authenticate"] = problem.challenge
    if detail := problem.detail or (problem.message if status == 400 else None):
        headers[ERROR_DETAIL] = json.dumps(detail[:_DETAIL_CHARACTERS])
    return _render(form, status, problem.message, headers, problem.extra)


def problem_headers(problem: Problem) -> dict[str, str]:
    """Return the headers of a problem in every form: its code, its field, and when to try again."""
    headers = {ERROR_CODE: error_code(type(problem))}
    if problem.field:  # its names can be the client's own
        headers[ERROR_FIELD] = re.sub(r"[^\w.$/-]", "_", problem.field[:_FIELD_CHARACTERS], flags=re.ASCII)
    if problem.retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(problem.retry_after)))
    return headers


def _render(
    form: ErrorForm, status: int, message: str, headers: Mapping[str, str], extra: Mapping[str, Any] | None = None
) -> Response:
    if form is ErrorForm.TEXT:
        return PlainTextResponse(f"{message}\n", status, {"Cache-Control": "no-store", **headers})
    return JSONResponse(error_body(form, status, message, extra), status, headers)


async def _problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return problem_response(rule_of(request.scope).errors, error)


async def _validation(request: Request, error: Exception) -> Response:
    """Answer 400 with the name of the first invalid field, never with its value."""
    assert isinstance(error, ValidationException)
    fault = error.errors()[0]
    return _refuse_input(request, _describe_fault(fault), _field_of_body(fault), _path(fault))


def _field_of_body(fault: Mapping[str, Any]) -> str | None:
    location, *path = fault["loc"]
    if location != "body":
        return None
    return "" if not path or fault["type"] == "json_invalid" else str(path[0])


def _refuse_input(request: Request, message: str, field: str | None, path: str = "") -> Response:
    """Answer 400; `field` is the field of the body that is malformed, empty for all of it, None outside the body."""
    problem, fields = _body_problems.get(request.scope.get("endpoint"), (None, ()))
    if problem is not None and (field == "" or field in fields):
        return problem_response(rule_of(request.scope).errors, problem(detail=message, field=path))
    return problem_response(rule_of(request.scope).errors, InvalidInput(message, field=path))


def _path(fault: Mapping[str, Any]) -> str:
    """Return the path of a field without its place: `body`, `query`, `path` or `header`."""
    return "" if fault["type"] == "json_invalid" else ".".join(str(part) for part in fault["loc"][1:])


def _describe_fault(fault: Mapping[str, Any]) -> str:
    if fault["type"] == "json_invalid":
        return "Invalid JSON body"
    if tuple(fault["loc"]) == ("body",) and fault["type"] in _NO_OBJECT:
        return "The body must be a JSON object, sent with Content-Type: application/json"
    where = _path(fault)
    message = _length(fault) or str(fault["msg"]).removeprefix("Value error, ").replace(
        "an instance of Sequence", "a valid list"
    )
    return f"{where}: {message}" if where else message


def _length(fault: Mapping[str, Any]) -> str:
    """Say a length error: pydantic calls text that a validator read first, and sequences, a value of items."""
    context = fault.get("ctx", {})
    if context.get("field_type") != "Value":
        return ""
    bound, side = ("min_length", "least") if fault["type"] == "too_short" else ("max_length", "most")
    count, noun = context[bound], "character" if isinstance(fault.get("input"), str) else "item"
    return f"must have at {side} {count} {noun}{'' if count == 1 else 's'}"


async def _too_deep(request: Request, _error: Exception) -> Response:
    """Answer 400 to JSON that is nested too deeply for a parser."""
    return _refuse_input(request, "Invalid JSON body", "")


async def _left(_request: Request, _error: Exception) -> Response:
    """Return a response for the access log; the client has left."""
    return Response(status_code=CLIENT_LEFT)


async def _unexpected(request: Request, _error: Exception) -> Response:
    """Answer a plain 500; `RequestContextMiddleware` logs the exception."""
    return error_response(request.scope, 500, "Internal error")


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status, headers = error.status_code, dict(error.headers or {})
    if status == 400:  # the framework's, for JSON that its reader gives up: an integer of 5,000 digits
        return await _too_deep(request, error)
    if status in {404, 405} and (methods := _allowed_methods(request)):
        status, headers["Allow"] = 405, ", ".join(sorted(methods))
    return error_response(request.scope, status, _HTTP_MESSAGES.get(status, "Bad request"), headers=headers)


def route_methods(routes: Sequence[BaseRoute], scope: Scope) -> set[str]:
    """Return the methods of all routes that match the path."""
    originals = [context.original_route for context in iter_route_contexts(routes)]
    fitting = [route for route in originals if route.matches(scope)[0] is not Match.NONE]
    return {method for route in fitting if isinstance(route, Route) for method in route.methods or ()}


def _allowed_methods(request: Request) -> set[str]:
    """Return all methods of a path (RFC 9110, 10.2.1), also those whose path is rewritten."""
    methods = route_methods(request.app.routes, request.scope)
    methods |= address_of(request.scope).other_methods
    return methods | {"HEAD"} if "GET" in methods else methods
