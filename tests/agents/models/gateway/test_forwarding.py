"""Responses and embeddings pass through to a provider that has them: real sockets, with Roost's rules around them."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from starlette.responses import JSONResponse

from roost.agents.models.gateway.model import ModelTimeouts
from roost.core.db import Database
from roost.drivers.model.anthropic.driver import AnthropicUpstream
from roost.drivers.model.contract import ModelSettings
from roost.drivers.model.openai import OpenAIUpstream
from roost.drivers.model.scripted import ScriptedUpstream
from tests.agents.models.gateway.model_env import AGENT, ModelEnv, open_model_env
from tests.drivers.model.local import KEY, MODEL, OpenAIProvider, serving, until

RESPONSES, EMBEDDINGS = "/v0/llm/v1/responses", "/v0/llm/v1/embeddings"


class ForwardingEnv:
    def __init__(self, env: ModelEnv, provider: OpenAIProvider, relay: httpx2.AsyncClient) -> None:
        self.env, self.provider, self.relay = env, provider, relay

    async def ask(self, text: str, path: str = RESPONSES, **fields: Any) -> httpx2.Response:
        """Send a request as the agent does, from inside its container."""
        return await self.relay.post(path, json={"model": MODEL, "input": text, **fields})

    async def usage(self) -> tuple[str, int, int, int]:
        (row,) = await self.env.gateway.list_usage(self.env.tenant_id, AGENT)
        return row.model, row.requests, row.prompt_tokens, row.completion_tokens


@pytest.fixture
async def forwarding(database: Database) -> AsyncIterator[ForwardingEnv]:
    provider = OpenAIProvider()
    async with serving(provider) as url:
        upstreams = [
            OpenAIUpstream(ModelSettings("far", "openai", f"{url}/v1", KEY, (MODEL,))),
            ScriptedUpstream(),
            AnthropicUpstream(ModelSettings("claude", "anthropic", url, KEY, (MODEL,))),
        ]
        async with (
            open_model_env(database, upstreams, timeouts=ModelTimeouts(5.0, 0.3)) as env,
            serving(env.relayed) as address,
            httpx2.AsyncClient(base_url=address, trust_env=False) as relay,
        ):
            yield ForwardingEnv(env, provider, relay)
            await until(lambda: env.gateway._slots.running_requests == {})


def _events(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Return name and data of each event."""
    *events, rest = text.split("\n\n")
    assert rest == ""
    pairs = [event.split("\n") for event in events]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in pairs]


def _error(response: httpx2.Response, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert KEY.reveal() not in response.text
    return response.json()["error"]


async def test_embeddings_pass_unchanged_and_are_counted(forwarding: ForwardingEnv) -> None:
    answer = await forwarding.ask("four", EMBEDDINGS, model=f"far/{MODEL}", dimensions=2)
    assert answer.json()["data"] == [{"object": "embedding", "index": 0, "embedding": [0.5, 4.0]}]
    assert forwarding.provider.bodies == [{"model": MODEL, "input": "four", "dimensions": 2}]
    assert forwarding.provider.headers["authorization"] == f"Bearer {KEY.reveal()}"
    assert await forwarding.usage() == (f"far/{MODEL}", 1, 5, 0)


async def test_a_response_passes_unchanged_and_is_counted(forwarding: ForwardingEnv) -> None:
    answer = await forwarding.ask("/say hello", instructions="Be brief", store=True)
    assert answer.json()["output"][0]["content"] == [{"type": "output_text", "text": "hello"}]
    body = {"model": MODEL, "input": "/say hello", "instructions": "Be brief", "store": False}
    assert forwarding.provider.bodies == [body]
    assert await forwarding.usage() == (f"far/{MODEL}", 1, 11, 7)


async def test_a_streamed_response_keeps_its_events(forwarding: ForwardingEnv) -> None:
    answer = await forwarding.ask("/say hello", stream=True)
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = _events(answer.text)
    assert [name for name, _ in events] == ["response.created", "response.output_text.delta", "response.completed"]
    assert all(data["type"] == name for name, data in events)
    assert events[-1][1]["response"]["output"][0]["content"][0]["text"] == "hello"
    assert await forwarding.usage() == (f"far/{MODEL}", 1, 11, 7)


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("/hang", "timeout", "The model gave no output for 0.3 s"),
        ("/break", "server_error", "The model provider is not available (far): not with [redacted]"),
        ("/cut", None, "The answer of the model provider far ended early"),
    ],
)
async def test_a_stream_that_fails_ends_with_an_error_event(
    forwarding: ForwardingEnv, text: str, code: str | None, message: str
) -> None:
    answer = await forwarding.ask(text, stream=True)
    *begun, (name, data) = _events(answer.text)
    assert [one for one, _ in begun] == ["response.created", "response.output_text.delta"]
    assert (name, data["code"], data["message"]) == ("error", code, message)
    assert data["error"] == {"message": message, "type": "server_error", "param": None, "code": code}
    assert await forwarding.usage() == (f"far/{MODEL}", 1, 2 if text != "/cut" else 1, 3)
    await until(lambda: forwarding.provider.left == forwarding.provider.hanging)


@pytest.mark.parametrize("stream", [False, True])
async def test_keys_in_a_failed_response_are_redacted(forwarding: ForwardingEnv, stream: bool) -> None:
    answer = await forwarding.ask("/fail", stream=stream)
    assert KEY.reveal() not in answer.text
    assert "the key [redacted] is tired" in answer.text


@pytest.mark.parametrize("model", ["scripted/scripted", f"claude/{MODEL}"])
@pytest.mark.parametrize("path", [RESPONSES, EMBEDDINGS])
async def test_a_source_without_the_endpoint_is_404(forwarding: ForwardingEnv, model: str, path: str) -> None:
    error = _error(await forwarding.ask("hello", path, model=model), 404)
    endpoint = path.removeprefix("/v0/llm/v1")
    assert error["message"] == f"The source of the model `{model}` has no endpoint {endpoint}"
    assert (error["type"], error["code"]) == ("invalid_request_error", "unsupported_endpoint")


@pytest.mark.parametrize("stream", [False, True])
async def test_a_provider_without_the_endpoint_is_404(forwarding: ForwardingEnv, stream: bool) -> None:
    forwarding.provider.refusal = JSONResponse({"detail": "Not Found"}, 404)
    assert "Not Found" in _error(await forwarding.ask("hello", stream=stream), 404)["message"]
    assert (await forwarding.env.gateway.list_usage(forwarding.env.tenant_id)) == []


@pytest.mark.parametrize("field", ["previous_response_id", "conversation", "background"])
async def test_agents_that_share_a_key_share_no_stored_responses(forwarding: ForwardingEnv, field: str) -> None:
    error = _error(await forwarding.ask("hello", **{field: "resp_of_another_agent"}), 400)
    assert (error["param"], error["code"]) == (field, "unsupported_parameter")
    assert forwarding.provider.bodies == []


async def test_an_unknown_model_a_malformed_body_and_a_stranger_are_refused(forwarding: ForwardingEnv) -> None:
    assert _error(await forwarding.ask("hello", model="none"), 404)["code"] == "model_not_found"
    assert "model" in _error(await forwarding.relay.post(EMBEDDINGS, json={"input": "x"}), 400)["message"]
    async with serving(forwarding.env) as url, httpx2.AsyncClient(base_url=url, trust_env=False) as stranger:
        for path in (RESPONSES, EMBEDDINGS):
            _error(await stranger.post(path, json={"model": MODEL, "input": "x"}), 401)
