"""Model providers with agents' own keys: each agent uses its own key and no other."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from starlette.responses import JSONResponse, RedirectResponse

from tests.drivers.model.local import KEY, MODEL, AnthropicProvider, OpenAIProvider, raw, serving
from tests.support.server import RunningServer, running

LOOPBACK: dict[str, Any] = {"ROOST_EGRESS_ALLOW": "127.0.0.0/8"}
OTHER_KEY = "sk-other-9876543210fedcba"


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    async with running(tmp_path_factory.mktemp("own") / "data", **LOOPBACK) as server:
        yield server


class Owner:
    """Tenant with one agent."""

    def __init__(self, server: RunningServer, tenant: str) -> None:
        self.server = server
        self.http = server.client(server.key(tenant))

    async def create(self) -> "Owner":
        self.record: dict[str, Any] = (await self.http.post("/v0/agents", json={"name": "a"})).json()["agent"]
        self.agent = self.server.agent_client(self.record)
        return self

    async def attach_secrets(self, **values: str) -> list[str]:
        """Attach secrets with these names; return their ids."""
        made: list[str] = []
        for name, value in values.items():
            answer = await self.http.post("/v0/secrets", json={"name": name, "value": value})
            assert answer.is_success, answer.text
            made.append(answer.json()["secret"]["id"])
        answer = await self.http.post(f"/v0/agents/{self.record['agentId']}/secrets", json={"secretIds": made})
        assert answer.is_success, answer.text
        return made

    async def detach(self, secret_id: str) -> None:
        path = f"/v0/agents/{self.record['agentId']}/secrets/{secret_id}"
        (await self.http.delete(path)).raise_for_status()

    async def models(self) -> list[str]:
        return [model["id"] for model in (await self.agent.get("/v0/llm/v1/models")).json()["data"]]

    async def complete_chat(self, model: str, text: str = "/say yes", **more: Any) -> httpx.Response:
        body = {"model": model, "messages": [{"role": "user", "content": text}], **more}
        return await self.agent.post("/v0/llm/v1/chat/completions", json=body)


@pytest.fixture
async def owner(server: RunningServer, request: pytest.FixtureRequest) -> Owner:
    return await Owner(server, request.node.name[:50]).create()


async def answer_text(answer: httpx.Response) -> str:
    assert answer.status_code == 200, answer.text
    return answer.json()["choices"][0]["message"]["content"]


async def test_an_agent_gets_the_models_of_its_own_provider_first(server: RunningServer, owner: Owner) -> None:
    other = await Owner(server, "others").create()
    sibling = (await owner.http.post("/v0/agents", json={"name": "b"})).json()["agent"]
    provider = AnthropicProvider()
    async with serving(provider) as url:
        await owner.attach_secrets(ANTHROPIC_API_KEY=KEY.reveal(), ANTHROPIC_BASE_URL=url)
        assert await owner.models() == [MODEL, f"anthropic/{MODEL}", "scripted/scripted"]
        assert await answer_text(await owner.complete_chat(MODEL)) == "yes"
        assert provider.headers["x-api-key"] == KEY.reveal()
        streamed = await owner.complete_chat(f"anthropic/{MODEL}", stream=True)
        assert "yes" in streamed.text
        assert streamed.text.endswith("data: [DONE]\n\n")
        strangers = [other.agent, server.agent_client(sibling), owner.http]
        for stranger in strangers:
            listed = (await stranger.get("/v0/llm/v1/models")).json()["data"]
            assert [model["id"] for model in listed] == ["scripted", "scripted/scripted"]
            body = {"model": f"anthropic/{MODEL}", "messages": [{"role": "user", "content": "x"}]}
            assert (await stranger.post("/v0/llm/v1/chat/completions", json=body)).status_code == 404
        assert len(provider.bodies) == 2
    usage = await server.roost.agents.models.gateway.list_usage(
        await server.roost.core.identity.gateway_tokens.get_tenant_id(owner.record["agentId"])
    )
    assert [(row.model, row.requests) for row in usage] == [(f"anthropic/{MODEL}", 2)]


async def test_models_of_the_deployment_stay_beside_own_ones(owner: Owner) -> None:
    async with serving(OpenAIProvider()) as url:
        await owner.attach_secrets(OPENAI_API_KEY=KEY.reveal(), OPENAI_BASE_URL=f"{url}/v1")
        assert await answer_text(await owner.complete_chat("openai/parrot")) == "yes"
        assert await answer_text(await owner.complete_chat("scripted/scripted")) == "yes"
        assert await answer_text(await owner.complete_chat("scripted", "/say no")) == "no"


async def test_the_next_request_goes_by_the_new_key_and_none_by_one_that_was_taken_away(owner: Owner) -> None:
    provider = OpenAIProvider()
    async with serving(provider) as url:
        key, _ = await owner.attach_secrets(GROQ_API_KEY=KEY.reveal(), GROQ_BASE_URL=f"{url}/v1")
        await answer_text(await owner.complete_chat("groq/parrot"))
        assert provider.headers["authorization"] == f"Bearer {KEY.reveal()}"
        (await owner.http.put(f"/v0/secrets/{key}", json={"value": OTHER_KEY})).raise_for_status()
        await answer_text(await owner.complete_chat("groq/parrot"))
        assert provider.headers["authorization"] == f"Bearer {OTHER_KEY}"
        await owner.detach(key)
        assert (await owner.complete_chat("groq/parrot")).status_code == 404
        assert await owner.models() == ["scripted", "scripted/scripted"]
        assert len(provider.bodies) == 3  # the new key was tried


async def test_a_key_that_is_not_accepted_is_told_without_the_key(
    owner: Owner, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    provider = OpenAIProvider()
    provider.refusal = JSONResponse({"error": {"message": f"Incorrect API key provided: {KEY.reveal()}"}}, 401)
    async with serving(provider) as url:
        await owner.attach_secrets(OPENAI_API_KEY=KEY.reveal(), OPENAI_BASE_URL=f"{url}/v1")
        assert await owner.models() == ["scripted/scripted"]
        answer = await owner.complete_chat("openai/parrot")
    assert answer.status_code == 503
    assert "does not accept the configured key or account (openai)" in answer.json()["error"]["message"]
    written = capfd.readouterr()
    for text in (answer.text, caplog.text, written.out, written.err):
        assert KEY.reveal() not in text


async def test_a_key_goes_nowhere_by_a_redirect(owner: Owner) -> None:
    thief = OpenAIProvider()
    provider = OpenAIProvider()
    async with serving(thief) as away, serving(provider) as url:
        await owner.attach_secrets(OPENAI_API_KEY=KEY.reveal(), OPENAI_BASE_URL=f"{url}/v1")
        await owner.models()
        provider.refusal = RedirectResponse(f"{away}/v1/chat/completions", 307)
        assert (await owner.complete_chat("openai/parrot")).status_code == 503
    assert not thief.bodies
    assert not thief.headers


async def test_one_that_does_not_answer_keeps_nobody_else_waiting(server: RunningServer, owner: Owner) -> None:
    other = await Owner(server, "patient").create()
    async with AsyncExitStack() as stack:
        asked: list[int] = []
        url = await stack.enter_async_context(raw(b"", hold=True))
        good = await stack.enter_async_context(serving(OpenAIProvider()))
        await owner.attach_secrets(OPENAI_API_KEY=KEY.reveal(), OPENAI_BASE_URL=f"{url}/v1")
        await other.attach_secrets(OPENAI_API_KEY=KEY.reveal(), OPENAI_BASE_URL=f"{good}/v1")

        async def listed() -> None:
            asked.append(len(await owner.models()))

        waiting = asyncio.create_task(listed())
        assert await other.models() == ["parrot", "openai/parrot", "scripted/scripted"]
        assert await answer_text(await other.complete_chat("parrot")) == "yes"
        assert not asked  # its own list waits for the slow provider, with a timeout
        await waiting
        assert asked == [1]
        assert await answer_text(await owner.complete_chat("scripted/scripted")) == "yes"


async def test_inside_addresses_are_refused_where_the_operator_did_not_open_them(tmp_path: Path) -> None:
    provider = OpenAIProvider()
    async with running(tmp_path / "data") as closed, serving(provider) as url:
        owner = await Owner(closed, "acme").create()
        port = url.rpartition(":")[2]
        places = ["127.0.0.1", "localhost", "2130706433", "[::ffff:127.0.0.1]", "0.0.0.0"]
        key, base = await owner.attach_secrets(
            OPENAI_API_KEY=KEY.reveal(), OPENAI_BASE_URL=f"http://127.0.0.1:{port}/v1"
        )
        for place in places:
            value = {"value": f"http://{place}:{port}/v1"}
            (await owner.http.put(f"/v0/secrets/{base}", json=value)).raise_for_status()
            answer = await owner.complete_chat("openai/parrot")
            assert answer.status_code == 503
            assert "it leads to an address that is not on the public internet" in answer.json()["error"]["message"]
        for place in ("169.254.169.254", "10.0.0.1", "[fd00::1]"):
            value = {"value": f"http://{place}/v1"}
            (await owner.http.put(f"/v0/secrets/{base}", json=value)).raise_for_status()
            assert (
                "not on the public internet" in (await owner.complete_chat("openai/parrot")).json()["error"]["message"]
            )
        await owner.detach(key)
    assert not provider.headers


async def test_an_address_that_is_none_leaves_the_provider_out(owner: Owner) -> None:
    await owner.attach_secrets(LITELLM_API_KEY=KEY.reveal(), LITELLM_BASE_URL="file:///etc/passwd")
    assert await owner.models() == ["scripted", "scripted/scripted"]
