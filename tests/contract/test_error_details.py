"""Every 400 names the field, and says what is allowed: each field of each described request is broken."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from roost.web.errors import ERROR_DETAIL
from tests.contract.endpoints import fill_path
from tests.contract.tenant_objects import NOWHERE
from tests.support.server import RunningServer

_BAD: Mapping[str, Any] = {
    "string": {"not": "text"},
    "object": 7,
    "array": 7,
    "integer": "x",
    "number": "x",
    "boolean": "x",
}


async def test_each_broken_field_is_named(server: RunningServer) -> None:
    agents, storage = server.client(server.key("broken")), server.client(server.key("broken"), "api.localhost")
    agent = (await agents.post("/v0/agents", json={"name": "a"})).json()["agent"]
    description = (await agents.get("/openapi")).json()
    known = {"agentId": agent["agentId"], "network": "public", "channel": "telegram", "cid": NOWHERE}
    broken, silent = 0, list[str]()
    for path, method, operation in _operations(description):
        target = fill_path(path, known)
        client = agents if path.startswith("/v0") else storage
        for where, name, options in _breaks(description, operation):
            answer = await client.request(method.upper(), target, **options)
            if answer.status_code == 400:
                broken += 1
                detail = json.loads(answer.headers.get(ERROR_DETAIL, '""'))
                if name not in detail:
                    silent.append(f"{method} {path} {where} {name}: {answer.text[:90]} | {detail[:80]}")
            elif answer.is_success:
                silent.append(f"{method} {path} {where} {name}: {answer.status_code} {answer.text[:60]}")
    assert not silent, f"{len(silent)}\n" + "\n".join(silent)
    assert broken > 300


def _operations(description: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for path, item in description["paths"].items():
        for method, operation in item.items():
            if method != "delete":
                yield path, method, operation


def _breaks(description: Mapping[str, Any], operation: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield place and name of each field with a request that breaks it alone."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    example = dict((content or {}).get("example") or {})
    if content:
        schema = _resolve(description, content["schema"])
        for name, field in schema.get("properties", {}).items():
            for bad in _bad_values(description, field):
                yield f"body {bad!r:.20}", name, {"json": {**example, name: bad}}
    parameters = operation.get("parameters", [])
    for parameter in parameters:
        if parameter["in"] == "query" and _kinds(description, parameter["schema"]) <= {
            "integer",
            "number",
            "boolean",
            "null",
        }:
            required = {one["name"]: "x" for one in parameters if one["in"] == "query" and one.get("required")}
            options: dict[str, Any] = {"params": {**required, parameter["name"]: "x"}}
            yield "query", parameter["name"], options | ({"json": example} if content else {})


def _bad_values(description: Mapping[str, Any], field: Mapping[str, Any]) -> Iterator[Any]:
    """Yield a value of another type, and one beyond each limit of the schema."""
    kinds = _kinds(description, field)
    yield from [value for kind, value in _BAD.items() if kind not in kinds and _type_of(value) not in kinds][:1]
    for schema in _choices(description, field):
        if "maxLength" in schema and schema["maxLength"] < 100_000:
            yield "x" * (schema["maxLength"] + 1)
        if schema.get("minLength"):
            yield ""
        if "enum" in schema:
            yield "no such value"
        if "maximum" in schema:
            yield schema["maximum"] + 1
        if "minimum" in schema:
            yield schema["minimum"] - 1
        if "maxItems" in schema and schema["maxItems"] < 10_000:
            yield ["x"] * (schema["maxItems"] + 1)


def _choices(description: Mapping[str, Any], schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    schema = _resolve(description, schema)
    inner = schema.get("anyOf") or schema.get("oneOf") or []
    return [choice for one in inner for choice in _choices(description, one)] or [schema]


def _resolve(description: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    while "$ref" in schema:
        schema = description["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def _kinds(description: Mapping[str, Any], schema: Mapping[str, Any]) -> set[str]:
    schema = _resolve(description, schema)
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return set[str]().union(*(_kinds(description, one) for one in choices))
    if "enum" in schema or "const" in schema:
        return {"string"}
    return {schema["type"]} if "type" in schema else {*_BAD, "null"}


def _type_of(value: Any) -> str:
    return {dict: "object", int: "integer", str: "string"}[type(value)]
