import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import httpx2
import pytest

from roost.agents.models.model import MAX_BODY_BYTES, MAX_CONCURRENT_REQUESTS
from roost.core.db import Database
from roost.drivers.model.contract import UpstreamDenied, UpstreamLimited, UpstreamRefused, UpstreamUnavailable
from roost.drivers.model.scripted import ScriptedUpstream
from roost.web.json_tokens import VALUES_LIMIT
from tests.agents.models.model_env import ModelEnv, Puppet, open_model_env, piece
from tests.drivers.model.local import serving, until

CHAT = "/v0/llm/v1/chat/completions"
BODY = {"model": "one", "messages": [{"role": "user", "content": "hello"}]}
STREAM = {**BODY, "stream": True}


class Rig:
    def __init__(self, env: ModelEnv, puppet: Puppet, client: httpx2.AsyncClient, relay: httpx2.AsyncClient) -> None:
        self.env, self.puppet, self.client, self.relay = env, puppet, client, relay

    async def idle(self) -> None:
        """No request holds a slot any more."""
        await until(lambda: self.env.gateway.running_requests == {})


@pytest.fixture
async def rig(database: Database) -> AsyncIterator[Rig]:
    async with AsyncExitStack() as stack:
        puppet = Puppet()
        env = await stack.enter_async_context(open_model_env(database, [puppet, ScriptedUpstream()], idle=5.0))
        url = await stack.enter_async_context(serving(env))
        relay_url = await stack.enter_async_context(serving(env.relayed))
        headers = {"Authorization": f"Bearer {env.key.reveal()}"}
        limits = httpx2.Limits(max_connections=None)
        clients = [
            await stack.enter_async_context(
                httpx2.AsyncClient(base_url=base, headers=h, trust_env=False, limits=limits)
            )
            for base, h in ((url, headers), (relay_url, {}))
        ]
        yield Rig(env, puppet, *clients)
        await until(lambda: env.gateway.running_requests == {})


def _events(text: str) -> list[Any]:
    events = text.split("\n\n")
    assert events.pop() == ""
    assert all(event.startswith("data: ") for event in events)
    return [event[6:] if event == "data: [DONE]" else json.loads(event[6:]) for event in events]


def _openai(response: httpx2.Response) -> dict[str, Any]:
    assert response.headers["content-type"] == "application/json"
    (name, error) = next(iter(response.json().items()))
    assert name == "error"
    assert set(error) == {"message", "type", "param", "code"}
    return error


async def test_models_are_listed(rig: Rig) -> None:
    answer = (await rig.client.get("/v0/llm/v1/models")).json()
    assert answer["object"] == "list"
    assert answer["data"][0] == {"id": "one", "object": "model", "created": 0, "owned_by": "puppet"}
    assert [model["id"] for model in answer["data"]] == ["one", "two", "puppet/one", "puppet/two", "scripted/scripted"]


@pytest.mark.parametrize("model", ["one", "puppet/one", "scripted/scripted", "scripted%2Fscripted"])
async def test_a_model_is_shown(rig: Rig, model: str) -> None:
    answer = await rig.client.get(f"/v0/llm/v1/models/{model}")
    assert answer.status_code == 200
    assert answer.json()["id"] == model.replace("%2F", "/")


@pytest.mark.parametrize("path", ["models/three", "models/x/y/z", "props", "", "chat", "models/"])
async def test_what_is_not_there_is_not_found(rig: Rig, path: str) -> None:
    answer = await rig.client.get(f"/v0/llm/v1/{path}")
    assert answer.status_code == 404
    assert _openai(answer)["type"] == "invalid_request_error"
    assert rig.puppet.asked <= 1


async def test_an_unknown_model_has_the_code_that_clients_know(rig: Rig) -> None:
    for response in (
        await rig.client.get("/v0/llm/v1/models/three"),
        await rig.client.post(CHAT, json={**BODY, "model": "three"}),
        await rig.client.post(CHAT, json={**STREAM, "model": "three"}),
    ):
        assert response.status_code == 404
        assert _openai(response)["code"] == "model_not_found"


async def test_an_answer_in_one_piece(rig: Rig) -> None:
    rig.puppet.answer = {"choices": [{"message": {"content": "half a pair: \ud83d"}}], "x": [1, None]}
    answer = await rig.client.post(CHAT, json=BODY)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert json.loads(answer.content) == rig.puppet.answer


async def test_an_answer_in_pieces(rig: Rig) -> None:
    rig.puppet.chunks = [piece("half a pair: \ud83d"), piece("new\n\nline"), piece(finish="stop")]
    answer = await rig.client.post(CHAT, json=STREAM)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-cache"
    assert _events(answer.text) == [*rig.puppet.chunks, "[DONE]"]


async def test_pieces_come_as_they_are_made(rig: Rig) -> None:
    rig.puppet.holds = True
    async with rig.client.stream("POST", CHAT, json=STREAM) as answer:
        lines = answer.aiter_lines()
        assert json.loads((await anext(lines))[6:]) == piece("hello")
        assert rig.puppet.holds
        rig.puppet.holds = False
        assert [line async for line in lines][-2] == "data: [DONE]"


@pytest.mark.parametrize("body", [BODY, STREAM])
@pytest.mark.parametrize(
    ("problem", "status", "kind"),
    [
        (UpstreamRefused("too long", extra={"code": "context_length_exceeded"}), 400, "invalid_request_error"),
        (UpstreamLimited(retry_after=7), 429, "rate_limit_error"),
        (UpstreamUnavailable(), 503, "server_error"),
        (UpstreamDenied(), 503, "server_error"),
    ],
)
async def test_an_upstreams_refusal_is_passed_on(rig: Rig, body: Any, problem: Any, status: int, kind: str) -> None:
    rig.puppet.chunks, rig.puppet.fails = [problem], problem
    answer = await rig.client.post(CHAT, json=body)
    assert answer.status_code == status
    error = _openai(answer)
    assert (error["message"], error["type"], error["code"]) == (problem.message, kind, problem.extra.get("code"))
    assert answer.headers.get("retry-after") == ("7" if status == 429 else None)


async def test_a_stream_that_breaks_ends_with_the_error(rig: Rig) -> None:
    rig.puppet.chunks = [piece("a"), UpstreamUnavailable("gone", extra={"code": "server_error"})]
    answer = await rig.client.post(CHAT, json=STREAM)
    assert answer.status_code == 200
    first, last = _events(answer.text)
    assert first == piece("a")
    assert last == {"error": {"message": "gone", "type": "server_error", "param": None, "code": "server_error"}}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "Invalid JSON body"),
        (b"{", "Invalid JSON body"),
        (b"\xff\xfe", "Invalid JSON body"),
        (b"[" * 10_000, "Invalid JSON body"),
        (b'"x"', "The body must be a JSON object"),
        (b'{"model":"one"}', "messages: Field required"),
        (b'{"model":"one","messages":[]}', "messages: List should have at least 1 item after validation, not 0"),
        (b'{"messages":[{"role":"user","content":"secret"}]}', "model: Field required"),
        (b'{"model":"one","messages":[{"role":"secret"}]}', "messages.0.role: "),
    ],
)
async def test_a_body_that_is_no_request_is_refused(rig: Rig, body: bytes, message: str) -> None:
    answer = await rig.client.post(CHAT, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    error = _openai(answer)
    assert error["message"].startswith(message)
    assert "secret" not in error["message"]
    assert error["type"] == "invalid_request_error"


async def test_a_body_has_its_limits(rig: Rig) -> None:
    long = json.dumps({**BODY, "x": "y" * MAX_BODY_BYTES}).encode()
    many = json.dumps({**BODY, "x": [0] * VALUES_LIMIT}).encode()
    for body in (long, many):
        answer = await rig.client.post(CHAT, content=body)
        assert answer.status_code == 413
        assert _openai(answer)["message"] == "Request body too large"
    large = json.dumps({**BODY, "x": "y" * (MAX_BODY_BYTES - 1000)}).encode()
    assert (await rig.client.post(CHAT, content=large)).status_code == 200


async def test_who_may_enter(rig: Rig) -> None:
    nobody: dict[str, str] = {"Authorization": ""}
    for method, path in (("GET", "/v0/llm/v1/models"), ("GET", "/v0/llm/v1/models/one"), ("POST", CHAT)):
        for headers in (nobody, {"Authorization": "Bearer wrong"}):
            answer = await rig.client.request(method, path, headers=headers, content=b"not even JSON")
            assert answer.status_code == 401
            assert _openai(answer)["type"] == "authentication_error"
    assert rig.puppet.asked == 0


async def test_requests_count_for_who_made_them(rig: Rig) -> None:
    token = {"Authorization": f"Bearer {rig.env.token.reveal()}"}
    await rig.client.post(CHAT, json=BODY)
    await rig.client.post(CHAT, json=BODY, headers=token)
    await rig.relay.post(CHAT, json=STREAM)
    usage = await rig.env.gateway.list_usage(rig.env.tenant_id)
    assert [(one.agent_id, one.requests) for one in usage] == [("", 1), ("agent-1", 2)]


async def test_one_agent_has_only_so_many_requests_running(rig: Rig) -> None:
    rig.puppet.holds = True
    rig.puppet.chunks = []
    running = [asyncio.ensure_future(rig.relay.post(CHAT, json=STREAM)) for _ in range(MAX_CONCURRENT_REQUESTS)]
    await until(lambda: rig.puppet.waiting == MAX_CONCURRENT_REQUESTS)
    refused = await rig.relay.post(CHAT, json=STREAM)
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "1"
    assert _openai(refused)["type"] == "rate_limit_error"
    assert (await rig.relay.get("/v0/llm/v1/models")).status_code == 200
    other = asyncio.ensure_future(rig.client.post(CHAT, json=STREAM))
    await until(lambda: rig.puppet.waiting == MAX_CONCURRENT_REQUESTS + 1)
    rig.puppet.holds = False
    assert {answer.status_code for answer in await asyncio.gather(*running, other)} == {200}
    assert (await rig.relay.post(CHAT, json=STREAM)).status_code == 200


@pytest.mark.parametrize("body", [BODY, STREAM], ids=["whole", "stream"])
@pytest.mark.parametrize("chunks", [[], [piece("a")]], ids=["before the first piece", "after it"])
async def test_a_client_who_goes_away_ends_the_request_upstream(rig: Rig, body: Any, chunks: Any) -> None:
    rig.puppet.holds = True
    rig.puppet.chunks = chunks
    asking = asyncio.ensure_future(rig.client.post(CHAT, json=body))
    await until(lambda: rig.puppet.waiting == 1)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await until(lambda: rig.puppet.left == 1)
    await rig.idle()


async def test_a_body_that_never_comes_holds_nothing_after_its_client_went(rig: Rig) -> None:
    url = rig.relay.base_url
    reader, writer = await asyncio.open_connection(url.host, url.port)
    writer.write(f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{{".encode())
    await until(lambda: rig.env.gateway.running_requests == {"agent-1": 1})
    writer.close()
    await rig.idle()
    assert await reader.read() == b""


async def test_the_description_of_the_api_tells_bodies_and_answers(rig: Rig) -> None:
    paths = rig.env.app.openapi()["paths"]
    chat = paths[CHAT]["post"]
    assert chat["requestBody"]["content"]["application/json"]["schema"]["required"] == ["model", "messages"]
    assert set(chat["responses"]["200"]["content"]) == {"application/json", "text/event-stream"}
    for path in (CHAT, "/v0/llm/v1/models", "/v0/llm/v1/models/{model}"):
        (operation,) = paths[path].values()
        schema = operation["responses"]["404"]["content"]["application/json"]["schema"]
        assert schema == {"$ref": "#/components/schemas/OpenAIErrorBody"}
