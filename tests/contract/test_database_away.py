"""PostgreSQL refuses connections and cuts those that are open: every API answers 503 in its own form."""

from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.engine import make_url

from tests.support.server import RunningServer, running

pytestmark = pytest.mark.postgres
CID = "bafkreih5aznjvttude6c3wbvqeebb6rlx5wkbzyppv7garjiubll2ceym4"


@pytest.fixture
def dialect() -> str:
    return "postgresql"


@pytest.fixture
async def server(tmp_path: Path, database_url: str) -> AsyncIterator[RunningServer]:
    async with running(tmp_path / "data", ROOST_DATABASE_URL=database_url) as server:
        yield server


def allow_connections(postgres_url: str, database_url: str, *, allowed: bool) -> None:
    name = make_url(database_url).database
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS {allowed}'.encode())
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])


async def test_each_api_says_503_and_works_again(server: RunningServer, postgres_url: str, database_url: str) -> None:
    key, unknown = server.key(), server.key()  # a verified key is known for a moment without the database
    management, storage = server.client(key), server.client(key, "api.localhost")
    models = server.client(unknown)
    agent = server.client("rst_gw_" + "0" * 64, "a1.agents.localhost")
    visitor = server.client(host="g1.gateways.localhost")
    assert (await management.get("/v0/agents")).status_code == 200
    allow_connections(postgres_url, database_url, allowed=False)
    try:
        for client, method, path, error in (
            (management, "GET", "/v0/agents", str),
            (management, "POST", "/v0/agents", str),
            (models, "GET", "/v0/llm/v1/models", {"message", "type", "param", "code"}),
            (models, "POST", "/v0/llm/v1/chat/completions", {"message", "type", "param", "code"}),
            (agent, "GET", "/page", str),
            (agent, "POST", "/v0/restart", str),
            (storage, "GET", "/v3/groups/public", {"code", "message"}),
            (storage, "POST", "/v3/groups/public", {"code", "message"}),
            (storage, "GET", "/groups", {"reason", "details"}),
            (storage, "POST", "/psa/pins", {"reason", "details"}),
        ):
            answer = await client.request(method, path, json={"name": "x", "cid": CID} if method == "POST" else None)
            told = f"{method} {path}: {answer.status_code} {answer.text}"
            assert (answer.status_code, answer.headers.get("retry-after")) == (503, "5"), told
            body = answer.json()["error"]
            assert isinstance(body, str) if error is str else body.keys() == error, told
            assert "The database is unavailable" in answer.text
        gone = await visitor.get(f"/ipfs/{CID}")
        assert (gone.status_code, gone.headers.get("retry-after")) == (503, "5")
    finally:
        allow_connections(postgres_url, database_url, allowed=True)
    assert (await management.get("/v0/agents")).status_code == 200
