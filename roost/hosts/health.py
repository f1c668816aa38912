"""Health for machines: alive, ready, and numbers. Metrics are for the operator and answer on `localhost` only."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from roost.core import log
from roost.core.problem import NotFound
from roost.identity.authenticator import HostKind
from roost.web.schemas import ErrorBody

Check = Callable[[], Awaitable[None]]
"""Raises when the part that it checks cannot be used."""

_log = log.get_logger("health")


def router(checks: Mapping[str, Check], registry: CollectorRegistry, deadline: float = 5.0) -> APIRouter:
    """The routes for `checks`, each under the name that `/readyz` shows, and with `deadline` seconds to pass."""
    routes = APIRouter(tags=["health"])

    @routes.get("/healthz")
    async def alive() -> dict[str, str]:
        """Whether the process answers at all."""
        return {"status": "ok"}

    @routes.get("/readyz", responses={503: {}})
    async def ready() -> JSONResponse:
        """Whether every part can be used; 503 names those that cannot."""
        parts = {name: await _passes(name, check, deadline) for name, check in checks.items()}
        good = all(parts.values())
        shown = {name: "ok" if passed else "failing" for name, passed in parts.items()}
        return JSONResponse({"status": "ok" if good else "failing", "checks": shown}, 200 if good else 503)

    @routes.get("/metrics", response_class=Response, responses={404: {"model": ErrorBody}})
    async def metrics(request: Request) -> Response:
        """Counters for Prometheus."""
        if request.scope["state"]["surface"] is not HostKind.LOCAL:
            raise NotFound
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return routes


async def _passes(name: str, check: Check, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await check()
    except Exception as error:  # noqa: BLE001 - whatever is wrong, the part is not ready
        _log.warning("not ready", part=name, error=str(error))
        return False
    return True
