"""The examples of requests in the description are understood by the server."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.contract.endpoints import fill_path
from tests.contract.tenant_objects import NOWHERE
from tests.support.server import RunningServer, running

OWN = {"engine": "fake", "version": "1.0.0"}
"""The values of this deployment for those of the examples."""


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    async with running(tmp_path_factory.mktemp("d") / "data", ROOST_TELEGRAM_API="http://127.0.0.1:9") as server:
        yield server


async def test_no_example_of_a_request_is_refused_as_malformed(server: RunningServer) -> None:
    """What they name may be unknown (404), there already (409) or a host that does not exist."""
    agents, storage = server.client(server.key()), server.client(server.key(), "api.localhost")
    agent = (await agents.post("/v0/agents", json={"name": "a"})).json()["agent"]
    paths: dict[str, Any] = (await agents.get("/openapi")).json()["paths"]
    known = {"agentId": agent["agentId"], "network": "public", "channel": "telegram", "cid": NOWHERE}
    known["snapshotCid"] = "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi"
    sent = 0
    for path, item in paths.items():
        for method, operation in item.items():
            example = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example")
            if example is None:
                continue
            target = fill_path(path, known)
            client = agents if path.startswith("/v0") else storage
            body = {**example, **{name: value for name, value in OWN.items() if name in example}}
            answer = await client.request(method.upper(), target, json=body)
            unknown = answer.status_code in {403, 404, 409} or "has not pinned" in answer.text
            unknown = unknown or "could not be resolved" in answer.text
            assert answer.is_success or unknown, (method, path, example, answer.text)
            sent += 1
    assert sent > 30
