"""Health: alive whatever is wrong, ready only when every part is."""

import httpx2 as httpx
from fastapi import FastAPI
from prometheus_client import CollectorRegistry, Counter

from roost.hosts import health
from roost.web import errors


async def fine() -> None:
    return


async def broken() -> None:
    raise RuntimeError("password=very-secret")


def client(**checks: health.Check) -> httpx.AsyncClient:
    registry = CollectorRegistry()
    Counter("roost_tries", "Tries", registry=registry).inc()
    app = FastAPI()
    errors.install_error_handlers(app)
    app.include_router(health.health_router(checks, registry))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost")


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


async def test_numbers_for_prometheus() -> None:
    async with client() as ask:
        answer = await ask.get("/metrics")
    assert (answer.status_code, "roost_tries_total 1.0" in answer.text) == (200, True)
