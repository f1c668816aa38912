"""The engine's configuration over HTTP, with a real gateway in a real container (case H7)."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from tests.support.server import RunningServer, running

WRITTEN = {"success": True, "message": "Config written"}
VALID = {"valid": True, "output": "Valid"}
FILE = ".roost/fake/settings.json"
JSON = {"Content-Type": "application/json"}
REDACTED = "__FAKE_REDACTED__"


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    async with running(tmp_path_factory.mktemp("d") / "data") as made:
        yield made


async def new_agent(server: RunningServer) -> tuple[str, httpx.AsyncClient]:
    made = await server.client(server.key()).post("/v0/agents", json={"name": "a"})
    assert made.status_code == 201, made.text
    return made.json()["agent"]["agentId"], server.agent_client(made.json()["agent"])


@pytest.fixture(scope="module")
async def agent(server: RunningServer) -> httpx.AsyncClient:
    return (await new_agent(server))[1]


async def get_config(agent: httpx.AsyncClient) -> dict[str, Any]:
    answer = await agent.get("/v0/config")
    assert answer.status_code == 200, answer.text
    return json.loads(answer.json()["config"])


async def put(agent: httpx.AsyncClient, config: object) -> httpx.Response:
    return await agent.put("/v0/config", json={"config": config})


async def kept(server: RunningServer, agent_id: str) -> dict[str, Any]:
    """Read the configuration file."""
    return json.loads(
        await server.roost.agents.registry.runtimes.get_warden(agent_id).read(FILE, root="home", limit=1 << 20)
    )


async def test_a_config_is_a_text_without_secrets(server: RunningServer, agent: httpx.AsyncClient) -> None:
    answer = await agent.get("/v0/config")
    assert list(answer.json()) == ["config"]
    assert json.loads(answer.json()["config"])["token"] == REDACTED
    assert "rst_" not in answer.text


@pytest.mark.parametrize("form", [json.dumps, lambda config: config])
async def test_written_configuration_is_in_effect(server: RunningServer, form: Any) -> None:
    agent_id, agent = await new_agent(server)
    answer = await put(agent, form({"greeting": "hello", "mine": {"a": [1]}, "my_key": "s3cret"}))
    assert (answer.status_code, answer.json()) == (200, WRITTEN)
    assert (await get_config(agent))["greeting"] == "hello"
    assert (await get_config(agent))["my_key"] == REDACTED
    assert (await kept(server, agent_id))["mine"] == {"a": [1]}
    assert (await agent.post("/v0/config/validate")).json() == VALID


async def test_a_placeholder_that_comes_back_keeps_the_value(server: RunningServer) -> None:
    agent_id, agent = await new_agent(server)
    await put(agent, {"my_key": "s3cret"})
    config = await get_config(agent)
    assert (await put(agent, {**config, "greeting": "hi"})).json() == WRITTEN
    assert (await kept(server, agent_id))["my_key"] == "s3cret"
    nothing = await put(agent, {"other_key": REDACTED})
    assert (nothing.status_code, nothing.json()) == (400, {"error": "Invalid JSON"})
    assert json.loads(nothing.headers["X-Error-Detail"]).startswith("other_key")


async def test_the_platforms_keys_stay_whatever_is_written(server: RunningServer) -> None:
    agent_id, agent = await new_agent(server)
    before = await kept(server, agent_id)
    theirs = {"token": "theirs", "port": 1, "model_url": "http://theirs", "name": "x", "version": "9"}
    assert (await put(agent, {**theirs, "greeting": "hi"})).json() == WRITTEN
    assert await kept(server, agent_id) == {**before, "greeting": "hi"}
    assert (await put(agent, {})).json() == WRITTEN
    assert await kept(server, agent_id) == before
    assert (await agent.get("/v1/models")).status_code == 200


async def test_settings_that_need_a_restart_get_one(server: RunningServer) -> None:
    agent_id, agent = await new_agent(server)
    process = (await server.roost.agents.registry.runtimes.get_warden(agent_id).processes())["gateway"].started_at
    assert (await put(agent, {"workers": 3})).json() == WRITTEN
    assert (await server.roost.agents.registry.runtimes.get_warden(agent_id).processes())[
        "gateway"
    ].started_at > process
    assert (await get_config(agent))["workers"] == 3
    assert (await agent.get("/v1/models")).status_code == 200


async def test_a_config_that_no_gateway_starts_with_is_taken_back(server: RunningServer) -> None:
    agent_id, agent = await new_agent(server)
    await put(agent, {"workers": 2, "greeting": "before"})
    answer = await put(agent, {"workers": 0, "greeting": "after"})
    assert (answer.status_code, answer.json()) == (500, {"error": "Failed to write config"})
    assert (await get_config(agent))["greeting"] == "before"
    assert (await kept(server, agent_id))["workers"] == 2
    assert (await agent.get("/v1/models")).status_code == 200


async def test_a_write_survives_restarts_and_a_new_container(tmp_path: Path) -> None:
    async with running(tmp_path / "data") as server:
        agent_id, agent = await new_agent(server)
        token = agent.headers["Authorization"].removeprefix("Bearer ")
        assert (await put(agent, {"greeting": "kept", "mine": 1, "my_key": "s3cret"})).json() == WRITTEN
        assert (await agent.post("/v0/restart")).status_code == 200
        assert (await get_config(agent))["greeting"] == "kept"
        await server.roost.drivers.runtime.stop(agent_id)
        assert (await agent.post("/v0/restart")).status_code == 200
        assert (await get_config(agent))["mine"] == 1
    async with running(tmp_path / "data") as server:
        agent = server.agent_client({"agentId": agent_id, "gatewayToken": token})
        assert (await agent.post("/v0/restart")).status_code == 200  # joins the start that is in progress
        assert (await get_config(agent))["greeting"] == "kept"
        assert (await kept(server, agent_id))["my_key"] == "s3cret"


@pytest.mark.parametrize("config", ["{", "", "nonsense", '{"a": 1', 7, True, [], [{}], None, "\ud800", {"a": "\udc00"}])
async def test_unreadable_configuration_is_invalid_json(agent: httpx.AsyncClient, config: object) -> None:
    before = await get_config(agent)
    paths = [("PUT", "/v0/config")] + [("POST", "/v0/config/validate")] * (config is not None)
    for method, path in paths:
        answer = await agent.request(method, path, content=json.dumps({"config": config}), headers=JSON)
        assert (answer.status_code, answer.json()) == (400, {"error": "Invalid JSON"})
    assert await get_config(agent) == before


@pytest.mark.parametrize("config", ["7", "[]", "null", '{"greeting": 7}', {"greeting": []}, {"port": "x"}])
async def test_configuration_refused_by_the_engine_has_its_words(agent: httpx.AsyncClient, config: object) -> None:
    for method, path in (("PUT", "/v0/config"), ("POST", "/v0/config/validate")):
        answer = await agent.request(method, path, json={"config": config})
        assert (answer.status_code, answer.json()) == (400, {"error": "Invalid JSON"})
        assert "expected" in json.loads(answer.headers["X-Error-Detail"])


async def test_a_body_that_is_none(agent: httpx.AsyncClient) -> None:
    for content in ("{", "[]", "7", '"x"'):
        for method, path in (("PUT", "/v0/config"), ("POST", "/v0/config/validate")):
            answer = await agent.request(method, path, content=content, headers=JSON)
            assert (answer.status_code, answer.json()) == (400, {"error": "Invalid JSON"})
        assert (await agent.post("/v0/config/validate", content=content, headers=JSON)).status_code == 400
    assert (await agent.put("/v0/config")).status_code == 400


async def test_sizes_and_depths_are_bounded(agent: httpx.AsyncClient) -> None:
    large = await put(agent, {"a": "x" * 600_000})
    assert (large.status_code, list(large.json())) == (413, ["error"])
    escaped = json.dumps({"config": json.dumps({"greeting": "\u044b" * 250_000}, ensure_ascii=False)})
    assert len(escaped) > 1024**2
    for method, path in (("PUT", "/v0/config"), ("POST", "/v0/config/validate")):
        assert (await agent.request(method, path, content=escaped, headers=JSON)).status_code == 200
    assert (await put(agent, '{"a":' * 20_000 + "1" + "}" * 20_000)).status_code == 400


async def test_validating_applies_nothing(agent: httpx.AsyncClient) -> None:
    before = await get_config(agent)
    answer = await agent.post("/v0/config/validate", json={"config": {"greeting": "only asked"}})
    assert (answer.status_code, answer.json()) == (200, VALID)
    assert await get_config(agent) == before
    for body in ({}, {"config": None}, None):
        assert (await agent.post("/v0/config/validate", json=body)).json() == VALID


async def test_a_config_is_replaced_only_as_it_was_read(server: RunningServer) -> None:
    _, agent = await new_agent(server)
    etag = (await agent.get("/v0/config")).headers["etag"]
    assert etag.startswith('"')

    async def write(greeting: str, if_match: str) -> httpx.Response:
        body = {"config": {"greeting": greeting}}
        return await agent.put("/v0/config", json=body, headers={"If-Match": if_match})

    answers = await asyncio.gather(*(write(f"writer {number}", f'"x", {etag}') for number in range(4)))
    assert sorted(answer.status_code for answer in answers) == [200, 412, 412, 412]
    refused = next(answer for answer in answers if answer.status_code == 412)
    assert refused.json() == {"error": "The configuration has changed since it was read: read it again"}
    won = [number for number, answer in enumerate(answers) if answer.status_code == 200]
    assert (await get_config(agent))["greeting"] == f"writer {won[0]}"
    for if_match in (etag, f"W/{(await agent.get('/v0/config')).headers['etag']}", "", "x"):
        assert (await write("again", if_match)).status_code == 412
    assert (await write("any", "*")).json() == WRITTEN
    assert (await put(agent, {"greeting": "without a condition"})).json() == WRITTEN


async def test_a_file_that_the_agent_spoilt_is_told_and_can_be_replaced(server: RunningServer) -> None:
    agent_id, agent = await new_agent(server)
    await server.roost.agents.registry.runtimes.get_warden(agent_id).write(FILE, b"{garbage", root="home")
    told = await agent.post("/v0/config/validate")
    assert told.status_code == 200
    assert told.json()["valid"] is False
    assert "Not JSON" in told.json()["output"]
    assert (await put(agent, {"greeting": "whole again"})).json() == WRITTEN
    assert (await agent.post("/v0/config/validate")).json() == VALID


async def test_an_engine_that_is_gone_fails_in_the_contracts_words(server: RunningServer) -> None:
    agent_id, agent = await new_agent(server)
    await server.roost.agents.registry.runtimes.get_warden(agent_id).stop("gateway")
    read = await agent.get("/v0/config")
    assert (read.status_code, read.json()) == (500, {"error": "Failed to read config"})
    for answer in (await agent.post("/v0/config/validate"), await put(agent, {})):
        assert (answer.status_code, answer.json()) == (500, {"error": "Validation command failed"})
    await server.roost.drivers.runtime.stop(agent_id)
    read = await agent.get("/v0/config")
    assert (read.status_code, read.json()) == (500, {"error": "Failed to read config"})


async def test_a_place_that_cannot_be_written_fails_the_write(server: RunningServer) -> None:
    _, agent = await new_agent(server)
    run = {"command": f"rm $HOME/{FILE} && mkdir $HOME/{FILE}"}
    assert (await agent.post("/v0/console/exec", json=run)).json()["exitCode"] == 0
    answer = await put(agent, {"greeting": "x"})
    assert (answer.status_code, answer.json()) == (500, {"error": "Failed to write config"})
