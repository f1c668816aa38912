"""HTTP API of a facilitator (x402): `/verify`, `/settle` and `/supported`, for servers with `facilitator_url`."""

import asyncio
import hmac
import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from roost.core import log
from roost.core.problem import Problem
from roost.core.sensitive import Sensitive
from roost.drivers.facilitator.contract import (
    ANSWER_LIMIT,
    Facilitator,
    FacilitatorFailed,
    PaymentRequest,
    PaymentSettlement,
    Verification,
)
from roost.http.server.server import HttpServer
from roost.identity.credentials import CredentialSource, find_credential
from roost.web.errors import ERROR_CODE, STATUS, problem_headers, status_code

_log = log.get_logger("facilitator")
_BODY_SECONDS = 30.0
_CALLS = 32
"""Calls at once; each is a thread that waits for the chain."""
_BAD_GATEWAY = 502

T = TypeVar("T")
_Call = Callable[[PaymentRequest], Awaitable[T]]


def create_facilitator_server(
    facilitator: Facilitator, supported: Mapping[str, Any], token: Sensitive[str] | None
) -> HttpServer:
    """Create a server of its own for the API; with a token, only its bearers are served."""
    calls = asyncio.Semaphore(_CALLS)

    async def answer(call: _Call[T], describe: Callable[[T], Mapping[str, Any]], request: Request) -> Response:
        if (refusal := _refuse_caller(request, token)) is not None:
            return refusal
        payment = await _read_payment(request)
        if payment is None:
            return _error_response(400, "The body must have x402Version, paymentPayload and paymentRequirements")
        try:
            async with calls:
                fields = describe(await call(payment))
        except Problem as problem:
            _log.warning("payment.failed", path=request.url.path, reason=problem.message)
            return _problem_response(problem)
        _log.info("payment.answered", path=request.url.path, **fields)
        return JSONResponse(fields)

    async def describe_supported(request: Request) -> Response:
        return _refuse_caller(request, token) or JSONResponse(supported)

    app = Starlette(
        routes=[
            Route("/verify", partial(answer, facilitator.verify, _describe_verification), methods=["POST"]),
            Route("/settle", partial(answer, facilitator.settle, _describe_settlement), methods=["POST"]),
            Route("/supported", describe_supported, methods=["GET"]),
        ],
        exception_handlers={HTTPException: _http_error},
    )
    return HttpServer(app, HttpToolsProtocol)


def _refuse_caller(request: Request, token: Sensitive[str] | None) -> Response | None:
    if token is None:
        return None
    credential = find_credential(request.headers, "")
    given = credential.token if credential is not None and credential.source is CredentialSource.HEADER else ""
    if hmac.compare_digest(given.encode(), token.reveal().encode()):
        return None
    return _error_response(401, "A valid token is required", {"WWW-Authenticate": "Bearer"})


async def _read_payment(request: Request) -> PaymentRequest | None:
    """Read the body; None for one that is malformed, too large or too slow."""
    body = b""
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for piece in request.stream():
                body += piece
                if len(body) > ANSWER_LIMIT:
                    return None
        content = json.loads(body)
    except (TimeoutError, ClientDisconnect, ValueError, RecursionError):
        return None
    return _parse_payment(content)


def _parse_payment(content: Any) -> PaymentRequest | None:
    if not isinstance(content, dict):
        return None
    fields: dict[str, Any] = content  # pyright: ignore[reportUnknownVariableType] - JSON has no other keys
    version, payload, requirements = map(fields.get, ("x402Version", "paymentPayload", "paymentRequirements"))
    if version not in (1, 2) or not isinstance(payload, dict) or not isinstance(requirements, dict):
        return None
    return PaymentRequest(int(version), payload, requirements)  # pyright: ignore[reportUnknownArgumentType] - JSON


def _describe_verification(verification: Verification) -> Mapping[str, Any]:
    return _without_none(
        {"isValid": verification.is_valid, "payer": verification.payer, "invalidReason": verification.reason}
    )


def _describe_settlement(settlement: PaymentSettlement) -> Mapping[str, Any]:
    return _without_none(
        {
            "success": settlement.is_settled,
            "transaction": settlement.transaction,
            "network": settlement.network,
            "payer": settlement.payer,
            "amount": settlement.amount,
            "errorReason": settlement.reason,
        }
    )


def _without_none(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _problem_response(problem: Problem) -> Response:
    status = _BAD_GATEWAY if isinstance(problem, FacilitatorFailed) else STATUS[problem.kind]
    return _error_response(status, problem.message, problem_headers(problem))


def _error_response(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse({"error": message}, status, {ERROR_CODE: status_code(status), **(headers or {})})


async def _http_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _error_response(error.status_code, error.detail, error.headers)
