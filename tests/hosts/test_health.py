"""Health: alive whatever is wrong, ready only when every part is, numbers for this machine alone."""

import httpx2 as httpx
import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry, Counter
from starlette.types import Receive, Scope, Send

from roost.hosts import health
from roost.identity.authenticator import HostKind
from roost.web import errors


async def fine() -> None:
    return


async def broken() -> None:
    raise RuntimeError("password=very-secret")


def client(surface: HostKind = HostKind.LOCAL, **checks: health.Check) -> httpx.AsyncClient:
    registry = CollectorRegistry()
    Counter("roost_tries", "Tries", registry=registry).inc()
    app = FastAPI()
    errors.install(app)
    app.include_router(health.router(checks, registry))

    async def addressed(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "state": {"surface": surface}}, receive, send)

    return httpx.AsyncClient(transport=httpx.ASGITransport(addressed), base_url="http://localhost")


async def test_alive_says_nothing_about_the_parts() -> None:
    async with client(database=broken) as ask:
        answer = await ask.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def test_ready_when_all_is() -> None:
    async with client(database=fine, containers=fine) as ask:
        answer = await ask.get("/readyz")
    assert answer.status_code == 200
    assert answer.json() == {"status": "ok", "checks": {"database": "ok", "containers": "ok"}}


async def test_what_is_not_ready_is_named_and_nothing_more() -> None:
    async with client(database=fine, containers=broken) as ask:
        answer = await ask.get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {"status": "failing", "checks": {"database": "ok", "containers": "failing"}}
    assert "very-secret" not in answer.text


@pytest.mark.parametrize(
    ("surface", "status"), [(HostKind.LOCAL, 200), (HostKind.MANAGEMENT, 404), (HostKind.AGENT, 404)]
)
async def test_numbers_are_for_this_machine(surface: HostKind, status: int) -> None:
    async with client(surface) as ask:
        answer = await ask.get("/metrics")
    assert answer.status_code == status
    assert ("roost_tries_total 1.0" in answer.text) is (status == 200)
