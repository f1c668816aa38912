"""Health checks, metrics for holders of their token, and the domain, by which clients find all addresses."""

import asyncio
import hmac
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from pydantic import BaseModel

from roost.core import log
from roost.core.problem import NotFound
from roost.core.sensitive import Sensitive
from roost.http.stack.address import HostAddresses
from roost.http.stack.routes import METRICS_SCHEME
from roost.identity.credentials import CredentialSource, find_credential
from roost.identity.errors import MissingCredential, Unauthorised
from roost.web.service_registry import provide_service

Check = Callable[[], Awaitable[None]]
"""A function that raises if its part of the server is unavailable."""

CHECK_SECONDS = 5.0
_log = log.get_logger("health")


class ReadinessRecord(BaseModel):
    status: Literal["ok", "failing", "stopping"]
    checks: Mapping[str, Literal["ok", "failing"]]


@dataclass
class ServerHealth:
    """What the routes below tell: `checks` by the name that `/readyz` shows, each with `deadline` seconds to pass.

    Without a `metrics_token` there are no metrics. `is_stopping`: whether the server wants no more requests.
    """

    checks: Mapping[str, Check]
    registry: CollectorRegistry
    metrics_token: Sensitive[str] | None = None
    deadline: float = CHECK_SECONDS
    is_stopping: Callable[[], bool] = lambda: False
    _running: asyncio.Task[Mapping[str, bool]] | None = field(default=None, init=False)

    async def run_checks(self) -> Mapping[str, bool]:
        """Return which checks pass. Requests at the same time share one run, because anyone may ask."""
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(pass_checks(self.checks, self.deadline))
        return await asyncio.shield(self._running)


Health = Annotated[ServerHealth, Depends(provide_service(ServerHealth))]
router = APIRouter(tags=["health"])


@router.get("/healthz")
async def check_liveness() -> dict[str, str]:
    """Return 200 while the process is alive."""
    return {"status": "ok"}


@router.get("/readyz", response_model=ReadinessRecord, responses={503: {"model": ReadinessRecord}})
async def check_readiness(health: Health) -> JSONResponse:
    """Check all dependencies; 503 names the failing ones, or says that the server stops."""
    passed = await health.run_checks()
    status = "failing" if not all(passed.values()) else "stopping" if health.is_stopping() else "ok"
    results = {name: "ok" if part else "failing" for name, part in passed.items()}
    return JSONResponse({"status": status, "checks": results}, 200 if status == "ok" else 503)


@router.get(
    "/metrics",
    response_class=PlainTextResponse,
    responses={401: {}, 404: {}},
    openapi_extra={"security": [{METRICS_SCHEME: []}]},
)
async def read_metrics(request: Request, health: Health) -> Response:
    """Return metrics in the Prometheus text format to the bearer of `metrics_token`; 404 without that setting."""
    _check_metrics_token(request, health.metrics_token)
    return Response(generate_latest(health.registry), media_type=CONTENT_TYPE_LATEST)


async def pass_checks(checks: Mapping[str, Check], deadline: float = CHECK_SECONDS) -> Mapping[str, bool]:
    """Run all checks at once; return which of them pass within `deadline` seconds."""
    passed = await asyncio.gather(*(_passes(name, check, deadline) for name, check in checks.items()))
    return dict(zip(checks, passed, strict=True))


def _check_metrics_token(request: Request, token: Sensitive[str] | None) -> None:
    """Check the header only. An address decides nothing: a proxy on this machine forwards the requests of others."""
    if token is None:
        raise NotFound
    credential = find_credential(request.headers, "")
    if credential is None or credential.source is not CredentialSource.HEADER:
        raise MissingCredential
    if not hmac.compare_digest(credential.token.encode(), token.reveal().encode()):
        raise Unauthorised


class DeploymentRecord(BaseModel):
    """`domain` is that of the addresses: `agents.D`, `{agentId}.agents.D`, `api.D`, `{name}.gateways.D`."""

    domain: str


@router.get("/.well-known/roost")
async def describe_deployment(
    addresses: Annotated[HostAddresses, Depends(provide_service(HostAddresses))],
) -> DeploymentRecord:
    """Return the domain of the server's addresses, which its own URLs show anyway."""
    return DeploymentRecord(domain=addresses.domain)


async def _passes(name: str, check: Check, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await check()
    except Exception as error:  # noqa: BLE001 - any failure means not ready
        _log.warning("health.check_failed", part=name, error=str(error))
        return False
    return True
