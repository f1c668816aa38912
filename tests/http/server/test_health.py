"""A server is alive whatever is wrong, and ready only when each of its parts is; it tells clients its domain."""

from pathlib import Path

import httpx2 as httpx
import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry, Counter

from roost.core.sensitive import Sensitive
from roost.drivers.runtime.fake import FakeRuntime
from roost.http.server import health
from roost.web import errors
from roost.web.service_registry import ServiceRegistry
from tests.support.server import running

TOKEN = "metrics-token-0123"


async def fine() -> None:
    return


async def broken() -> None:
    raise RuntimeError("password=very-secret")


def client(token: Sensitive[str] | None = None, **checks: health.Check) -> httpx.AsyncClient:
    registry = CollectorRegistry()
    Counter("roost_tries", "Tries", registry=registry).inc()
    app = FastAPI()
    errors.install_error_handlers(app)
    app.include_router(health.router)
    app.state.services = ServiceRegistry()
    app.state.services.add(health.ServerHealth(checks, registry, token))
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


async def test_a_server_that_stops_is_not_ready() -> None:
    service = FastAPI()
    service.include_router(health.router)
    service.state.services = ServiceRegistry()
    service.state.services.add(health.ServerHealth({"database": fine}, CollectorRegistry(), is_stopping=lambda: True))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(service), base_url="http://localhost") as ask:
        answer = await ask.get("/readyz")
    assert (answer.status_code, answer.json()) == (503, {"status": "stopping", "checks": {"database": "ok"}})


async def test_failing_part_is_named_without_details() -> None:
    async with client(database=fine, containers=broken) as ask:
        answer = await ask.get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {"status": "failing", "checks": {"database": "ok", "containers": "failing"}}
    assert "very-secret" not in answer.text


@pytest.mark.parametrize(
    ("target", "headers", "status"),
    [
        ("/metrics", {}, 401),
        ("/metrics", {"Authorization": "Bearer other"}, 401),
        ("/metrics", {"Cookie": f"gw_token={TOKEN}"}, 401),
        (f"/metrics?token={TOKEN}", {}, 401),
        ("/metrics", {"Authorization": f"Bearer {TOKEN}"}, 200),
    ],
)
async def test_metrics_need_their_token(target: str, headers: dict[str, str], status: int) -> None:
    async with client(Sensitive(TOKEN)) as ask:
        assert (await ask.get(target, headers=headers)).status_code == status
    async with client() as ask:
        assert (await ask.get(target, headers=headers)).status_code == 404


async def test_numbers_for_prometheus() -> None:
    async with client(Sensitive(TOKEN)) as ask:
        answer = await ask.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert (answer.status_code, "roost_tries_total 1.0" in answer.text) == (200, True)


async def test_every_address_of_the_server_tells_its_domain_and_no_agent_does(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with running(data, runtime=FakeRuntime(data), ROOST_DOMAIN="Cloud.Example") as server:
        for host in ("cloud.example", "agents.cloud.example", "api.cloud.example", "localhost", "127.0.0.1"):
            answer = await server.client(host=host).get("/.well-known/roost")
            assert (answer.status_code, answer.json()) == (200, {"domain": "cloud.example"}), host
        for host in ("someone.agents.cloud.example", "agents.localhost", "other.example"):
            answer = await server.client(host=host).get("/.well-known/roost")
            assert answer.status_code in {401, 404}, host
