"""Time from a chat request to the first token of its streamed answer, compared with the same engine without Roost.

The model is scripted and answers at once, so the time of the engine remains, and what Roost adds to it: the edge and
the relay before the engine, the relay and the model gateway behind it. Both engines use the same model server and run
at the priority of agents.
"""

import asyncio
import json
import os
import statistics
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import httpx2 as httpx

from bench.agents import AGENT_NICE, TOKEN, run_alone
from bench.row import Row
from bench.timing import take_turns
from roost import app, config
from roost.drivers.engine.contract import Engine
from tests.conformance.model_server import ANSWER, MODELS, ModelServer
from tests.journeys.server_process import ServerProcess, up

_PAIRS, _CHATS, _WARM = 9, 5, 3
_COMPLETIONS = "/v1/chat/completions"
_SHORTFALL = "It is the difference of two times of the engine, each of which varies by more than that."


def run(folder: Path) -> Iterator[Row]:
    engines = app.create_engines(config.load_settings({**os.environ, "ROOST_DATA": str(folder)}))
    with _serve_model() as model_url:
        environment = {"ROOST_MODEL_URL": model_url, "ROOST_MODELS": MODELS[0]}
        with up(folder / "data", "--no-first-agent", **environment) as server:
            for engine in reversed(engines):
                with run_alone(engine, model_url, AGENT_NICE):
                    yield from _measure(engine, server, model_url)


def _measure(engine: Engine, server: ServerProcess, model_url: str) -> Iterator[Row]:
    agent = server.create("bench", engine.id)
    headers = dict([engine.credential(TOKEN)])
    alone = httpx.Client(
        base_url=f"http://127.0.0.1:{engine.port}",
        headers={name: value.reveal() for name, value in headers.items()} | {"X-Forwarded-For": "192.0.0.8"},
        timeout=120,
        trust_env=False,
    )
    model = httpx.Client(base_url=model_url.removesuffix("/v1"), timeout=120, trust_env=False)
    with alone, model, server.agent_client(agent) as edge, server.client() as api:
        name = _find_model(edge)
        body = {"model": name, "messages": _MESSAGES, "stream": True}
        ways = (
            partial(_median_first_token, edge, _COMPLETIONS, body),
            partial(_median_first_token, api, f"/v0/agents/{agent['agentId']}/chat", {"messages": _MESSAGES}),
            partial(_median_first_token, alone, _COMPLETIONS, body),
            partial(_median_first_token, model, _COMPLETIONS, {**body, "model": MODELS[0]}),
        )
        for way in ways:
            way(_WARM)
        through_edge, through_api, own, models = take_turns(*ways, runs=_PAIRS)
    others = {"the model alone": models}
    label = f"first token of {engine.label}"
    yield Row(f"{label}, through its address, p50", through_edge, "ms", "the engine alone", own, others=others)
    yield Row(f"{label}, our share of it", _subtract(through_edge, own), "ms", goal="<= 15 ms", shortfall=_SHORTFALL)
    yield Row(f"{label}, through the chat API, p50", through_api, "ms", "the engine alone", own, others=others)
    yield Row(f"{label}, our share of that", _subtract(through_api, own), "ms", goal="<= 15 ms", shortfall=_SHORTFALL)
    with server.client() as api:
        api.delete(f"/v0/agents/{agent['agentId']}").raise_for_status()


_MESSAGES = [{"role": "user", "content": "ping"}]


def _find_model(client: httpx.Client) -> str:
    """Return the name of the engine, which it offers as its first model."""
    return client.get("/v1/models").raise_for_status().json()["data"][0]["id"]


def _median_first_token(client: httpx.Client, path: str, body: Mapping[str, Any], chats: int = _CHATS) -> float:
    return statistics.median(_first_token_ms(client, path, body) for _ in range(chats))


def _first_token_ms(client: httpx.Client, path: str, body: Mapping[str, Any]) -> float:
    """Send a chat, and return the milliseconds until the first token; the whole answer is read."""
    began, took, text = perf_counter(), 0.0, ""
    with client.stream("POST", path, json=body) as response:
        assert response.status_code == 200, response.read()
        for line in response.iter_lines():
            part = _parse_text(line)
            if part and not text:
                took = (perf_counter() - began) * 1000
            text += part
    assert ANSWER in text, text
    return took


def _parse_text(line: str) -> str:
    """Return the text of an event of a chat completion, empty if it has none."""
    if not line.startswith("data: {"):
        return ""
    choices: Sequence[Any] = json.loads(line.removeprefix("data: ")).get("choices") or [{}]
    return choices[0].get("delta", {}).get("content") or ""


def _subtract(ours: Sequence[float], own: Sequence[float]) -> Sequence[float]:
    return [total - part for total, part in zip(ours, own, strict=True)]


@contextmanager
def _serve_model() -> Iterator[str]:
    """Run the scripted model server in a thread; yield its URL."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        serving = asyncio.run_coroutine_threadsafe(asyncio.start_server(ModelServer().serve, "127.0.0.1", 0), loop)
        yield f"http://127.0.0.1:{serving.result(10).sockets[0].getsockname()[1]}/v1"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
