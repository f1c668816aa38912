import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2
import pytest

from roost.agents.models.gateway.api import OpenAIModel, OpenAIModelList, encode_json, error_object, format_event
from roost.agents.models.gateway.errors import UnknownModel
from roost.agents.models.gateway.model import MAX_BODY_BYTES, MAX_CONCURRENT_REQUESTS, ModelInfo, ModelTimeouts
from roost.core.db import Database
from roost.drivers.model.contract import (
    ModelSettings,
    UpstreamDenied,
    UpstreamLimited,
    UpstreamRefused,
    UpstreamUnavailable,
)
from roost.drivers.model.openai import OpenAIUpstream
from roost.drivers.model.scripted import ScriptedUpstream
from roost.web.json_tokens import VALUES_LIMIT
from tests.agents.models.gateway.model_env import ControlledUpstream, ModelEnv, open_model_env, piece
from tests.drivers.model.local import raw, serving, sse, until

CHAT = "/v0/llm/v1/chat/completions"
BODY = {"model": "one", "messages": [{"role": "user", "content": "hello"}]}
STREAM = {**BODY, "stream": True}


class ApiEnv:
    def __init__(
        self, env: ModelEnv, upstream: ControlledUpstream, client: httpx2.AsyncClient, relay: httpx2.AsyncClient
    ) -> None:
        self.env, self.upstream, self.client, self.relay = env, upstream, client, relay

    async def idle(self) -> None:
        """No request holds a slot any more."""
        await until(lambda: self.env.gateway._slots.running_requests == {})


@pytest.fixture
async def api_env(database: Database) -> AsyncIterator[ApiEnv]:
    async with AsyncExitStack() as stack:
        upstream = ControlledUpstream()
        env = await stack.enter_async_context(
            open_model_env(database, [upstream, ScriptedUpstream()], timeouts=ModelTimeouts(idle=5.0))
        )
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
        yield ApiEnv(env, upstream, *clients)
        await until(lambda: env.gateway._slots.running_requests == {})


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


async def test_models_are_listed(api_env: ApiEnv) -> None:
    answer = (await api_env.client.get("/v0/llm/v1/models")).json()
    assert answer["object"] == "list"
    assert answer["data"][0] == {"id": "one", "object": "model", "created": 0, "owned_by": "controlled"}
    assert [model["id"] for model in answer["data"]] == [
        "one",
        "two",
        "controlled/one",
        "controlled/two",
        "scripted/scripted",
    ]


@pytest.mark.parametrize("model", ["one", "controlled/one", "scripted/scripted", "scripted%2Fscripted"])
async def test_a_model_is_shown(api_env: ApiEnv, model: str) -> None:
    answer = await api_env.client.get(f"/v0/llm/v1/models/{model}")
    assert answer.status_code == 200
    assert answer.json()["id"] == model.replace("%2F", "/")


@pytest.mark.parametrize("path", ["models/three", "models/x/y/z", "props", "", "chat", "models/"])
async def test_unknown_models_and_paths_are_not_found(api_env: ApiEnv, path: str) -> None:
    answer = await api_env.client.get(f"/v0/llm/v1/{path}")
    assert answer.status_code == 404
    assert _openai(answer)["type"] == "invalid_request_error"
    assert api_env.upstream.asked <= 1


async def test_an_unknown_model_has_the_code_that_clients_know(api_env: ApiEnv) -> None:
    for response in (
        await api_env.client.get("/v0/llm/v1/models/three"),
        await api_env.client.post(CHAT, json={**BODY, "model": "three"}),
        await api_env.client.post(CHAT, json={**STREAM, "model": "three"}),
    ):
        assert response.status_code == 404
        assert _openai(response)["code"] == "model_not_found"


async def test_an_answer_in_one_piece(api_env: ApiEnv) -> None:
    api_env.upstream.answer = {"choices": [{"message": {"content": "half a pair: \ud83d"}}], "x": [1, None]}
    answer = await api_env.client.post(CHAT, json=BODY)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert json.loads(answer.content) == api_env.upstream.answer


async def test_an_answer_in_pieces(api_env: ApiEnv) -> None:
    api_env.upstream.chunks = [piece("half a pair: \ud83d"), piece("new\n\nline"), piece(finish="stop")]
    answer = await api_env.client.post(CHAT, json=STREAM)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-cache"
    assert _events(answer.text) == [*api_env.upstream.chunks, "[DONE]"]


async def test_pieces_come_as_they_are_made(api_env: ApiEnv) -> None:
    api_env.upstream.holds = True
    async with api_env.client.stream("POST", CHAT, json=STREAM) as answer:
        lines = answer.aiter_lines()
        assert json.loads((await anext(lines))[6:]) == piece("hello")
        assert api_env.upstream.holds
        api_env.upstream.holds = False
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
async def test_an_upstreams_refusal_is_passed_on(
    api_env: ApiEnv, body: Any, problem: Any, status: int, kind: str
) -> None:
    api_env.upstream.chunks, api_env.upstream.fails = [problem], problem
    answer = await api_env.client.post(CHAT, json=body)
    assert answer.status_code == status
    error = _openai(answer)
    assert (error["message"], error["type"], error["code"]) == (problem.message, kind, problem.extra.get("code"))
    assert answer.headers.get("retry-after") == ("7" if status == 429 else None)


async def test_a_stream_that_breaks_ends_with_the_error(api_env: ApiEnv) -> None:
    api_env.upstream.chunks = [piece("a"), UpstreamUnavailable("gone", extra={"code": "server_error"})]
    answer = await api_env.client.post(CHAT, json=STREAM)
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
async def test_a_body_that_is_no_request_is_refused(api_env: ApiEnv, body: bytes, message: str) -> None:
    answer = await api_env.client.post(CHAT, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 400
    error = _openai(answer)
    assert error["message"].startswith(message)
    assert "secret" not in error["message"]
    assert error["type"] == "invalid_request_error"


async def test_a_body_has_its_limits(api_env: ApiEnv) -> None:
    long = json.dumps({**BODY, "x": "y" * MAX_BODY_BYTES}).encode()
    many = json.dumps({**BODY, "x": [0] * VALUES_LIMIT}).encode()
    for body in (long, many):
        answer = await api_env.client.post(CHAT, content=body)
        assert answer.status_code == 413
        assert _openai(answer)["message"] == "Request body too large"
    large = json.dumps({**BODY, "x": "y" * (MAX_BODY_BYTES - 1000)}).encode()
    assert (await api_env.client.post(CHAT, content=large)).status_code == 200


async def test_who_may_enter(api_env: ApiEnv) -> None:
    nobody: dict[str, str] = {"Authorization": ""}
    for method, path in (("GET", "/v0/llm/v1/models"), ("GET", "/v0/llm/v1/models/one"), ("POST", CHAT)):
        for headers in (nobody, {"Authorization": "Bearer wrong"}):
            answer = await api_env.client.request(method, path, headers=headers, content=b"not even JSON")
            assert answer.status_code == 401
            assert _openai(answer)["type"] == "authentication_error"
    assert api_env.upstream.asked == 0


async def test_requests_count_for_who_made_them(api_env: ApiEnv) -> None:
    token = {"Authorization": f"Bearer {api_env.env.token.reveal()}"}
    await api_env.client.post(CHAT, json=BODY)
    await api_env.client.post(CHAT, json=BODY, headers=token)
    await api_env.relay.post(CHAT, json=STREAM)
    usage = await api_env.env.gateway.list_usage(api_env.env.tenant_id)
    assert [(one.agent_id, one.requests) for one in usage] == [("", 1), ("agent-1", 2)]


async def test_one_agent_has_only_so_many_requests_running(api_env: ApiEnv) -> None:
    api_env.upstream.holds = True
    api_env.upstream.chunks = []
    running = [asyncio.ensure_future(api_env.relay.post(CHAT, json=STREAM)) for _ in range(MAX_CONCURRENT_REQUESTS)]
    await until(lambda: api_env.upstream.waiting == MAX_CONCURRENT_REQUESTS)
    refused = await api_env.relay.post(CHAT, json=STREAM)
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "1"
    assert _openai(refused)["type"] == "rate_limit_error"
    assert (await api_env.relay.get("/v0/llm/v1/models")).status_code == 200
    other = asyncio.ensure_future(api_env.client.post(CHAT, json=STREAM))
    await until(lambda: api_env.upstream.waiting == MAX_CONCURRENT_REQUESTS + 1)
    api_env.upstream.holds = False
    assert {answer.status_code for answer in await asyncio.gather(*running, other)} == {200}
    assert (await api_env.relay.post(CHAT, json=STREAM)).status_code == 200


@pytest.mark.parametrize("body", [BODY, STREAM], ids=["whole", "stream"])
@pytest.mark.parametrize("chunks", [[], [piece("a")]], ids=["before the first piece", "after it"])
async def test_a_client_who_goes_away_ends_the_request_upstream(api_env: ApiEnv, body: Any, chunks: Any) -> None:
    api_env.upstream.holds = True
    api_env.upstream.chunks = chunks
    asking = asyncio.ensure_future(api_env.client.post(CHAT, json=body))
    await until(lambda: api_env.upstream.waiting == 1)
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await until(lambda: api_env.upstream.left == 1)
    await api_env.idle()


async def test_a_body_that_never_comes_holds_nothing_after_its_client_went(api_env: ApiEnv) -> None:
    url = api_env.relay.base_url
    reader, writer = await asyncio.open_connection(url.host, url.port)
    writer.write(f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{{".encode())
    await until(lambda: api_env.env.gateway._slots.running_requests == {"agent-1": 1})
    writer.close()
    await api_env.idle()
    assert await reader.read() == b""


async def test_the_description_of_the_api_tells_bodies_and_answers(api_env: ApiEnv) -> None:
    paths = api_env.env.app.openapi()["paths"]
    chat = paths[CHAT]["post"]
    assert chat["requestBody"]["content"]["application/json"]["schema"]["required"] == ["model", "messages"]
    assert set(chat["responses"]["200"]["content"]) == {"application/json", "text/event-stream"}
    for path in (CHAT, "/v0/llm/v1/models", "/v0/llm/v1/models/{model}"):
        (operation,) = paths[path].values()
        schema = operation["responses"]["404"]["content"]["application/json"]["schema"]
        assert schema == {"$ref": "#/components/schemas/ModelErrorBody"}


SILENT = {"message": "The model gave no output for 0.2 s", "type": "server_error", "param": None, "code": "timeout"}


@pytest.mark.parametrize("body", [BODY, STREAM], ids=["whole", "stream"])
async def test_a_provider_that_accepts_and_never_answers_is_a_timeout(database: Database, body: dict[str, Any]) -> None:
    async with raw(b"", hold=True) as url, _served_from(database, url) as client:
        response = await client.post(CHAT, json=body)
    assert (response.status_code, _openai(response)) == (504, SILENT)


async def test_a_provider_that_stalls_in_a_stream_ends_it_with_an_error(database: Database) -> None:
    async with raw(sse(json.dumps(piece("hel"))), hold=True) as url, _served_from(database, url) as client:
        response = await client.post(CHAT, json=STREAM)
    first, error = _events(response.text)
    assert (response.status_code, first["choices"][0]["delta"]["content"], error) == (200, "hel", {"error": SILENT})


@asynccontextmanager
async def _served_from(database: Database, url: str) -> AsyncIterator[httpx2.AsyncClient]:
    """Yield a client of a gateway with one provider at `url`."""
    upstream = OpenAIUpstream(ModelSettings("far", "openai", url, models=("one",)))
    async with open_model_env(database, [upstream], timeouts=ModelTimeouts(0.2, 0.2)) as env, serving(env) as address:
        headers = {"Authorization": f"Bearer {env.key.reveal()}"}
        async with httpx2.AsyncClient(base_url=address, headers=headers, trust_env=False) as client:
            yield client


def test_a_model_has_the_form_that_openais_clients_read() -> None:
    one = {"id": "a/b", "object": "model", "created": 0, "owned_by": "a"}
    assert OpenAIModel.from_model(ModelInfo("a/b", "a")).model_dump() == one
    assert OpenAIModelList.from_models([ModelInfo("a/b", "a")]).model_dump() == {"object": "list", "data": [one]}


def test_whatever_text_an_upstream_sends_can_be_passed_on() -> None:
    value = {"text": "ü \ud83d \u2028 \n\n data: x"}
    line = format_event(value)
    assert line.isascii()
    assert line.count(b"\n") == 2
    assert json.loads(line.removeprefix(b"data: ")) == value
    assert encode_json({"a": [1, None]}) == b'{"a":[1,null]}'


def test_an_error_in_a_stream_looks_like_one_before_it() -> None:
    assert error_object(UnknownModel("x"))["error"] == {
        "message": "The model `x` does not exist",
        "type": "invalid_request_error",
        "param": None,
        "code": "model_not_found",
    }
    assert error_object(UpstreamLimited("slow down"))["error"]["type"] == "rate_limit_error"
