"""The contract of model upstreams, over every implementation."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from roost.core.db import Database
from roost.core.sensitive import Sensitive
from roost.drivers.model.anthropic.driver import AnthropicUpstream
from roost.drivers.model.chat import ChatRequest
from roost.drivers.model.contract import ModelSettings, ModelUpstream, UpstreamRefused
from roost.drivers.model.openai import OpenAIUpstream
from roost.drivers.model.scripted import ScriptedUpstream
from tests.agents.models.gateway.model_env import open_model_env
from tests.drivers.model.local import KEY, MODEL, AnthropicProvider, OpenAIProvider, serving

TOOL = {
    "type": "function",
    "function": {"name": "weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}},
}


@dataclass
class UpstreamEnv:
    upstream: ModelUpstream
    model: str

    def request(self, text: str, **more: Any) -> ChatRequest:
        messages = more.pop("messages", [{"role": "user", "content": text}])
        return ChatRequest.model_validate({"model": self.model, "messages": messages, **more})

    async def stream(self, text: str, **more: Any) -> list[dict[str, Any]]:
        return [chunk async for chunk in self.upstream.stream(self.request(text, stream=True, **more))]


@pytest.fixture
def dialect() -> str:
    return "sqlite"


@pytest.fixture(params=["scripted", "openai", "openai over our own gateway", "anthropic"])
async def subject(request: pytest.FixtureRequest) -> AsyncIterator[UpstreamEnv]:
    async with AsyncExitStack() as stack:
        match request.param:
            case "scripted":
                env = UpstreamEnv(ScriptedUpstream(), "scripted")
            case "openai":
                url = await stack.enter_async_context(serving(OpenAIProvider()))
                env = UpstreamEnv(OpenAIUpstream(ModelSettings("openai", "openai", f"{url}/v1", KEY)), MODEL)
            case "anthropic":
                url = await stack.enter_async_context(serving(AnthropicProvider()))
                env = UpstreamEnv(AnthropicUpstream(ModelSettings("anthropic", "anthropic", url, KEY)), MODEL)
            case _:
                database: Database = request.getfixturevalue("database")
                gateway = await stack.enter_async_context(open_model_env(database, [ScriptedUpstream()]))
                url = await stack.enter_async_context(serving(gateway))
                key: Sensitive[str] = gateway.key
                env = UpstreamEnv(OpenAIUpstream(ModelSettings("own", "openai", f"{url}/v0/llm/v1", key)), "scripted")
        stack.push_async_callback(env.upstream.close)
        yield env


def _text(chunks: list[dict[str, Any]]) -> str:
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])


def _finish(chunks: list[dict[str, Any]]) -> list[str]:
    return [reason for chunk in chunks for choice in chunk["choices"] if (reason := choice["finish_reason"])]


async def test_it_lists_its_models(subject: UpstreamEnv) -> None:
    assert subject.model in await subject.upstream.list_models()


async def test_it_answers_a_completion(subject: UpstreamEnv) -> None:
    answer = await subject.upstream.complete(subject.request("/say good morning"))
    assert answer["object"] == "chat.completion"
    assert answer["choices"][0]["message"] == {"role": "assistant", "content": "good morning"}
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["id"]
    usage = answer["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert usage["prompt_tokens"] > 0 < usage["completion_tokens"]


async def test_it_streams_an_answer(subject: UpstreamEnv) -> None:
    chunks = await subject.stream("/say one two  three")
    assert _text(chunks) == "one two  three"
    assert len(chunks) >= 4
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert _finish(chunks) == ["stop"]
    assert not any(chunk.get("usage") for chunk in chunks)


async def test_the_last_chunk_has_the_usage_if_requested(subject: UpstreamEnv) -> None:
    chunks = await subject.stream("/say one", stream_options={"include_usage": True})
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["prompt_tokens"] > 0 < chunks[-1]["usage"]["completion_tokens"]
    assert not any(chunk.get("usage") for chunk in chunks[:-1])


async def test_it_calls_a_tool(subject: UpstreamEnv) -> None:
    answer = await subject.upstream.complete(subject.request('/tool weather {"city": "Oslo"}', tools=[TOOL]))
    choice = answer["choices"][0]
    assert choice["finish_reason"] == "tool_calls"
    (call,) = choice["message"]["tool_calls"]
    assert call["id"]
    assert (call["type"], call["function"]["name"]) == ("function", "weather")
    assert json.loads(call["function"]["arguments"]) == {"city": "Oslo"}


async def test_it_streams_a_tool_call(subject: UpstreamEnv) -> None:
    chunks = await subject.stream('/tool weather {"city": "Oslo"}', tools=[TOOL])
    pieces = [
        call for chunk in chunks for choice in chunk["choices"] for call in choice["delta"].get("tool_calls") or []
    ]
    assert {piece["index"] for piece in pieces} == {0}
    assert pieces[0]["id"]
    assert pieces[0]["function"]["name"] == "weather"
    assert json.loads("".join(piece["function"].get("arguments", "") for piece in pieces)) == {"city": "Oslo"}
    assert _finish(chunks) == ["tool_calls"]


async def test_it_accepts_a_tools_result(subject: UpstreamEnv) -> None:
    call = {"id": "call_9", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    messages = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "/tool weather {}"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_9", "content": "sun and wind"},
    ]
    answer = await subject.upstream.complete(subject.request("", messages=messages, tools=[TOOL]))
    assert "sun and wind" in answer["choices"][0]["message"]["content"]


async def test_it_accepts_content_in_parts(subject: UpstreamEnv) -> None:
    parts = [{"type": "text", "text": "look:"}, {"type": "text", "text": "/say seen"}]
    answer = await subject.upstream.complete(subject.request("", messages=[{"role": "user", "content": parts}]))
    assert answer["choices"][0]["message"]["content"] == "seen"


async def test_unknown_fields_are_ignored(subject: UpstreamEnv) -> None:
    answer = await subject.upstream.complete(subject.request("/say yes", x_unknown={"deep": [1]}, seed=7, n=1))
    assert answer["choices"][0]["message"]["content"] == "yes"


async def test_a_missing_model_is_refused(subject: UpstreamEnv) -> None:
    request = subject.request("/say no").for_model("not-there")
    with pytest.raises(UpstreamRefused):
        await subject.upstream.complete(request)
    with pytest.raises(UpstreamRefused):
        await anext(subject.upstream.stream(request.model_copy(update={"stream": True})))


async def test_a_stream_can_be_closed_at_any_time(subject: UpstreamEnv) -> None:
    for pieces in range(4):
        stream = subject.upstream.stream(subject.request("/say one two three four five", stream=True))
        for _ in range(pieces):
            await anext(stream)
        await stream.aclose()
    assert _text(await subject.stream("/say still here")) == "still here"


async def test_concurrent_streams_do_not_mix(subject: UpstreamEnv) -> None:
    answers = await asyncio.gather(*(subject.stream(f"/say number {number}") for number in range(12)))
    assert [_text(chunks) for chunks in answers] == [f"number {number}" for number in range(12)]


async def test_close_is_idempotent(subject: UpstreamEnv) -> None:
    await subject.upstream.close()
    await subject.upstream.close()
