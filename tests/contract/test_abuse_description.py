"""Requests generated from `/openapi`, valid and invalid; each response is one of the documented ones."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2 as httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.support.server import RunningServer, running

SECONDS = 25
Draw = st.DrawFn
_ODD = st.sampled_from(
    [
        "",
        "x",
        " ",
        "..",
        "../..",
        "%00",
        "\u202e",
        "\ud7ff",
        "é" * 300,
        "-1",
        "9" * 30,
        "null",
        "' OR 1=1",
        "{}",
        "a" * 5000,
    ]
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20) | _ODD,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)


def values(schema: dict[str, Any], whole: dict[str, Any]) -> SearchStrategy[Any]:
    """Return valid values of a schema, for the keywords that our schemas use."""
    if "$ref" in schema:
        return st.deferred(lambda: values(_resolved(schema, whole), whole))
    if "const" in schema or "enum" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return st.one_of(*(values(one, whole) for one in schema[several]))
    kind = schema.get("type")
    if kind == "object":
        return _objects(schema, whole)
    if kind == "array":
        return st.lists(values(schema.get("items", {}), whole), max_size=3)
    if kind == "string":
        return st.text(min_size=schema.get("minLength", 0), max_size=min(schema.get("maxLength", 30), 30)) | _ODD
    if kind in {"integer", "number"}:
        least = schema.get("minimum", schema.get("exclusiveMinimum", -5))
        return st.integers(least, schema.get("maximum", least + 55))
    return {"boolean": st.booleans(), "null": st.none()}.get(kind or "", _JSON)


def _objects(schema: dict[str, Any], whole: dict[str, Any]) -> SearchStrategy[Any]:
    fields = {name: values(one, whole) for name, one in schema.get("properties", {}).items()}
    needed = set(schema.get("required", ()))
    more = schema.get("additionalProperties")
    if not fields and isinstance(more, dict):
        return st.dictionaries(st.text(max_size=10), values(more, whole), max_size=3)
    return st.fixed_dictionaries(
        {name: one for name, one in fields.items() if name in needed},
        optional={name: one for name, one in fields.items() if name not in needed},
    )


def _resolved(schema: dict[str, Any], whole: dict[str, Any]) -> dict[str, Any]:
    found = whole
    for part in schema["$ref"].removeprefix("#/").split("/"):
        found = found[part]
    return found


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    folder: Path = tmp_path_factory.mktemp("d") / "data"
    async with running(folder, ROOST_QUOTA_PAID="2") as server:
        yield server


async def test_every_answer_is_one_that_the_description_names(server: RunningServer) -> None:
    api = server.client(server.key())
    agent = (await api.post("/v0/agents", json={"name": "a"})).json()["agent"]
    described = (await api.get("/openapi")).json()
    operations = [
        (method.upper(), path, one)
        for path, item in described["paths"].items()
        for method, one in item.items()
        if not path.endswith(("/watch", "/events"))  # their responses have no end
    ]
    clients = [
        api,
        server.client(server.key(), "localhost"),
        server.client(),
        server.client("x"),
        server.client(server.key("else")),
    ]
    loop, until = asyncio.get_running_loop(), time.monotonic() + SECONDS
    seen: set[tuple[str, str, int]] = set()

    async def check(method: str, path: str, one: dict[str, Any], request: dict[str, Any]) -> None:
        client: httpx.AsyncClient = clients[request.pop("client")]
        answer = await client.request(method, request.pop("target"), **request)
        seen.add((method, path, answer.status_code))
        told = f"{method} {path} {request}: {answer.status_code} {answer.text[:300]}"
        assert answer.status_code < 500 or answer.status_code == 503, told
        assert str(answer.status_code) in one["responses"] or answer.status_code == 405, told
        if answer.status_code >= 400 and path.startswith("/v0"):
            error = answer.json()["error"]
            assert isinstance(error["message"] if path.startswith("/v0/llm") else error, str), told

    @st.composite
    def requests(draw: Draw, method: str, path: str, one: dict[str, Any]) -> dict[str, Any]:
        at_home = 0 if path.startswith("/v0") else 1
        known = st.just("b" * 16 if method == "DELETE" else agent["agentId"])
        target, query = path, {}
        for parameter in one.get("parameters", ()):
            name = parameter["name"]
            if parameter["in"] == "path":
                value = draw(
                    known | known | _ODD.filter(bool) if name == "agentId" else st.just("scripted") | _ODD.filter(bool)
                )
                target = target.replace(f"{{{name}}}", quote(value, safe=""))
            elif draw(st.booleans()):
                query[name] = draw(values(parameter["schema"], described) | _ODD)
        request: dict[str, Any] = {
            "client": draw(st.sampled_from([at_home, at_home, at_home, 0, 1, 2, 3, 4])),
            "target": target,
            "params": query,
        }
        if "requestBody" in one:
            kind, content = draw(st.sampled_from(list(one["requestBody"]["content"].items())))
            body = draw(values(content["schema"], described) | _JSON)
            request["content"] = draw(st.just(json.dumps(body).encode()) | st.binary(max_size=50))
            request["headers"] = {"Content-Type": draw(st.sampled_from([kind, kind, kind, "text/plain", "x", ""]))}
        return request

    @settings(
        max_examples=9,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list[HealthCheck](HealthCheck),  # pyright: ignore[reportArgumentType] - its metaclass is untyped
        derandomize=True,
    )
    @given(st.data())
    def walk(operation: tuple[str, str, dict[str, Any]], data: st.DataObject) -> None:
        request = data.draw(requests(*operation))
        if time.monotonic() < until or operation[:2] not in {one[:2] for one in seen}:
            asyncio.run_coroutine_threadsafe(check(*operation, request), loop).result(60)

    for operation in operations:
        await loop.run_in_executor(None, walk, operation)
    assert {(method, path) for method, path, _ in operations} == {(method, path) for method, path, _ in seen}
    succeeded = {(method, path) for method, path, status in seen if status < 300}
    assert len(succeeded) > len(operations) // 4, "nearly all requests were refused"
