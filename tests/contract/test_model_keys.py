"""A key of a model provider is tried before it replaces anything; a failed try leaves everything as it was."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from httpx2 import AsyncClient, Response
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.responses import Response as Answer

from tests.drivers.model.local import KEY, MODEL, OpenAIProvider, serving
from tests.support.server import RunningServer, running

GOOD, BETTER, BAD = KEY.reveal(), "sk-better-1234567890abcdef", "sk-bad-1234567890abcdefgh"


class ProviderOfKeys(OpenAIProvider):
    """A provider that knows some keys; `lists_to_all`: it asks for one only when a model has to answer."""

    def __init__(self, *, lists_to_all: bool = False) -> None:
        super().__init__()
        self.accepted = {GOOD, BETTER}
        self.lists_to_all = lists_to_all
        self.models_status = 200

    async def models(self, _request: Request) -> Answer:
        if self.models_status != 200:
            return JSONResponse({"error": {"message": "out of order"}}, self.models_status)
        return await super().models(_request) if self.lists_to_all or self.knows(_request) else refusal()

    async def chat(self, request: Request) -> Answer:
        return await super().chat(request) if self.knows(request) else refusal()

    def knows(self, request: Request) -> bool:
        return request.headers.get("authorization", "").removeprefix("Bearer ") in self.accepted


def refusal() -> Answer:
    return JSONResponse({"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}, 401)


class Tenant:
    def __init__(self, http: AsyncClient) -> None:
        self.http = http
        self.agents: list[str] = []

    async def add_agent(self, name: str) -> str:
        made = (await self.http.post("/v0/agents", json={"name": name})).json()["agent"]["agentId"]
        self.agents.append(made)
        return made

    async def use_key(self, agent: str, key: str, provider: str = "openai", **more: Any) -> Response:
        return await self.http.put(f"/v0/agents/{agent}/model-key", json={"provider": provider, "key": key, **more})

    async def has_models(self, agent: str) -> bool:
        found = (await self.http.get(f"/v0/agents/{agent}/models")).json()["models"]
        return f"openai/{MODEL}" in {one["id"] for one in found}

    async def read_secrets(self) -> dict[str, Any]:
        listed = (await self.http.get("/v0/secrets")).json()["secrets"]
        return {
            one["name"]: (one["id"], one["updatedAt"], {agent["agentId"] for agent in one["agents"]}) for one in listed
        }

    async def attach(self, agent: str, name: str, value: str, kind: str = "secret") -> str:
        body = {"name": name, "value": value, "type": kind}
        made = (await self.http.post("/v0/secrets", json=body)).json()["secret"]["id"]
        answer = await self.http.post(f"/v0/agents/{agent}/secrets", json={"secretIds": [made]})
        assert answer.is_success, answer.text
        return made


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    async with running(tmp_path_factory.mktemp("keys") / "data", ROOST_EGRESS_ALLOW="127.0.0.0/8") as server:
        yield server


@pytest.fixture
async def provider() -> ProviderOfKeys:
    return ProviderOfKeys()


@pytest.fixture
async def tenant(
    server: RunningServer, provider: ProviderOfKeys, request: pytest.FixtureRequest
) -> AsyncIterator[Tenant]:
    """A tenant with the agent "first", whose OpenAI is the provider."""
    tenant = Tenant(server.client(server.key(request.node.name[:50])))
    first = await tenant.add_agent("first")
    async with serving(provider) as url:
        await tenant.attach(first, "OPENAI_BASE_URL", f"{url}/v1", "variable")
        yield tenant


async def test_a_key_that_works_is_stored_and_used(tenant: Tenant) -> None:
    first = tenant.agents[0]
    answer = await tenant.use_key(first, f" {GOOD}\n")
    assert answer.json() == {"success": True, "secret": "OPENAI_API_KEY", "models": [MODEL]}, answer.text
    assert await tenant.has_models(first)
    answer = await tenant.use_key(first, BETTER)
    assert answer.is_success, answer.text
    assert (await tenant.read_secrets())["OPENAI_API_KEY"][2] == {first}


@pytest.mark.parametrize("lists_to_all", [False, True])
async def test_a_refused_key_leaves_everything_as_it_was(
    tenant: Tenant, provider: ProviderOfKeys, lists_to_all: bool
) -> None:
    provider.lists_to_all = lists_to_all
    first = tenant.agents[0]
    (await tenant.use_key(first, GOOD)).raise_for_status()
    before = await tenant.read_secrets()
    refused = await tenant.use_key(first, BAD)
    assert refused.status_code == 400
    assert "does not accept" in refused.text
    assert "Nothing was changed" in refused.text
    assert BAD not in refused.text
    provider.models_status = 500
    untried = await tenant.use_key(first, BETTER)
    assert untried.status_code == 503
    assert "Nothing was changed" in untried.text
    provider.models_status = 200
    assert await tenant.read_secrets() == before
    assert await tenant.has_models(first)


async def test_no_key_is_stored_before_one_works(tenant: Tenant) -> None:
    first = tenant.agents[0]
    before = await tenant.read_secrets()
    assert (await tenant.use_key(first, BAD)).status_code == 400
    assert (await tenant.use_key(first, "two words")).status_code == 400
    assert (await tenant.use_key(first, GOOD, provider="nobody")).status_code == 400
    assert await tenant.read_secrets() == before


async def test_a_key_of_others_is_replaced_only_for_those_that_are_named(tenant: Tenant) -> None:
    first = tenant.agents[0]
    (await tenant.use_key(first, GOOD)).raise_for_status()
    key, *_ = (await tenant.read_secrets())["OPENAI_API_KEY"]
    for name in ("second", "third"):
        agent = await tenant.add_agent(name)
        (await tenant.http.post(f"/v0/agents/{agent}/secrets", json={"secretIds": [key]})).raise_for_status()
    before = await tenant.read_secrets()
    for named in ([], [tenant.agents[1]]):
        answer = await tenant.use_key(first, BETTER, replaceFor=named)
        assert answer.status_code == 409
        assert "third" in answer.text
        assert ("second" in answer.text) is (named == [])
        assert await tenant.read_secrets() == before
    answer = await tenant.use_key(first, BETTER, replaceFor=tenant.agents[1:])
    assert answer.is_success, answer.text


async def test_a_secret_that_agents_use_is_not_replaced_by_a_key_that_the_provider_refuses(
    tenant: Tenant, provider: ProviderOfKeys
) -> None:
    first = tenant.agents[0]
    key = await tenant.attach(first, "OPENAI_API_KEY", GOOD)
    before = await tenant.read_secrets()
    refused = await tenant.http.put(f"/v0/secrets/{key}", json={"value": BAD})
    assert refused.status_code == 400
    assert "does not accept" in refused.text
    assert await tenant.read_secrets() == before
    (await tenant.http.put(f"/v0/secrets/{key}", json={"value": BETTER})).raise_for_status()
    assert await tenant.has_models(first)
    provider.models_status = 500  # nobody knows; an owner whose key leaked has to replace it all the same
    (await tenant.http.put(f"/v0/secrets/{key}", json={"value": GOOD})).raise_for_status()
    provider.models_status = 200
    (await tenant.http.delete(f"/v0/agents/{first}/secrets/{key}")).raise_for_status()
    (await tenant.http.put(f"/v0/secrets/{key}", json={"value": BAD})).raise_for_status()  # nobody uses it


async def test_another_name_of_the_providers_key_is_kept(server: RunningServer, tenant: Tenant) -> None:
    first = tenant.agents[0]
    await tenant.attach(first, "OPENAI_OAUTH_TOKEN", GOOD)
    answer = await tenant.use_key(first, BETTER)
    assert answer.json()["secret"] == "OPENAI_OAUTH_TOKEN"
    reader = server.client(server.key("stranger"))
    stranger = await Tenant(reader).use_key(first, BETTER)
    assert stranger.status_code == 401
