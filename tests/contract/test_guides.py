"""What the guides say of addresses, metrics and files, at a server."""

import re

import pytest

from tests.architecture.code import ROOT
from tests.support.server import RunningServer

pytestmark = pytest.mark.container
TOKEN = "metrics-token-0123"
SETTINGS = {"ROOST_METRICS_TOKEN": TOKEN}


def rows(page: str, heading: str) -> set[str]:
    """Return the names in backticks in the first column of a table; those of its other lines do not count."""
    text = (ROOT / f"docs/guides/{page}.md").read_text()
    table = text[text.index(heading) :].partition("\n\n")[0]
    return {name for row in table.splitlines()[2:] for name in re.findall(r"`([^`]+)`", row.split("|")[1])}


async def test_models_take_the_credential_of_their_address(server: RunningServer, tenant: str) -> None:
    key = server.key(tenant)
    made = await server.client(key).post("/v0/agents", json={"name": "Ada", "engine": "fake"})
    agent = made.json()["agent"]
    own = f"{agent['agentId']}.agents.localhost"
    for host, accepted in (("agents.localhost", {key}), (own, {agent["gatewayToken"]}), ("api.localhost", set[str]())):
        for token in (key, agent["gatewayToken"]):
            answer = await server.client(token, host).get("/v0/llm/v1/models")
            assert answer.status_code == (200 if token in accepted else 401), host
    for token in (key, agent["gatewayToken"]):
        assert (await server.client(token, "localhost").get("/v0/llm/v1/models")).status_code == 200


async def test_metrics_are_those_of_the_table(server: RunningServer) -> None:
    told = {name.partition("{")[0].removesuffix("_total") for name in rows("operating", "| metric | meaning |")}
    answer = await server.client(TOKEN, "localhost").get("/metrics")
    found = set(re.findall(r"^# TYPE (\w+?)(?:_total)? (?:counter|gauge|histogram)$", answer.text, re.MULTILINE))
    assert {name for name in found if not name.endswith("_created")} == told
    assert (await server.client(TOKEN, "agents.localhost").get("/metrics")).status_code == 200
    for host in ("api.localhost", "uploads.localhost"):
        assert (await server.client(TOKEN, host).get("/metrics")).status_code == 404


async def test_the_data_folder_has_what_the_table_names(server: RunningServer, tenant: str) -> None:
    uploads = server.client(server.key(tenant), "uploads.localhost")
    assert (await uploads.post("/v3/files", files={"file": ("a.txt", b"content")})).status_code == 200
    named = {name.partition("/")[0] for name in rows("operating", "| in the data folder | content |")}
    folder = server.roost.core.settings.data
    found = {path.name.removesuffix("-wal").removesuffix("-shm") for path in folder.iterdir()}
    assert {"blobs", "roost.db", "keys"} <= found
    assert found - named == set()
