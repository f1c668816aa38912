"""Invalid bodies: a 4xx in the contract's form, never a 500 (cases C1-C5, C7)."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.server import RunningServer

_FINE_FOR_RESTART = {"empty", "null", "NaN", "infinity", "huge float", "surrogate elsewhere"}
POSTS = ["/v0/agents", "/v0/agents/{id}/console/exec", "/v0/agents/{id}/files/upload", "/v0/agents/{id}/restart"]


def body_with(value: bytes) -> bytes:
    """Return a body with one value in the fields of all these requests."""
    fields = (b"name", b"command", b"filename", b"version")
    return b'{%b, "contentBase64": ""}' % b", ".join(b'"%b": %b' % (field, value) for field in fields)


BODIES: dict[str, bytes] = {
    "nesting": b"[" * 100_000 + b"]" * 100_000,
    "object nesting": b'{"a":' * 50_000 + b"1" + b"}" * 50_000,
    "not JSON": b"{name: x}",
    "NaN": b'{"name": NaN}',
    "infinity": b'{"name": -Infinity}',
    "huge number": b'{"name": 1' + b"0" * 5000 + b"}",
    "huge float": b'{"name": 1e999999}',
    "bad UTF-8": b'{"name": "\xff\xfe"}',
    "lone surrogate": body_with(b'"\\ud800"'),
    "surrogate elsewhere": b'{"name": "a", "description": "\\ud800", "command": "x", "cwd": "\\ud800"}',
    "NUL": body_with(b'"a\\u0000"'),
    "BOM": b"\xef\xbb\xbf{",
    "empty": b"",
    "a string": b'"name"',
    "a number": b"7",
    "null": b"null",
    "an array": b"[]",
    "null fields": b'{"name": null, "command": null, "filename": null, "contentBase64": null, "version": 7}',
    "wrong types": b'{"name": {}, "command": [], "filename": {}, "contentBase64": 1, "version": {}}',
    "prototype": b'{"__proto__": {"name": "x"}, "constructor": 1, "version": "__proto__"}',
}


@pytest.fixture(scope="module")
async def agent(server: RunningServer) -> dict[str, Any]:
    return (await server.client(server.key()).post("/v0/agents", json={"name": "a"})).json()["agent"]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (path, kind)
        for path in POSTS
        for kind in BODIES
        if not path.endswith("restart") or kind not in _FINE_FOR_RESTART  # which needs no body and looks at one field
    ],
)
async def test_a_bad_body_is_refused(server: RunningServer, agent: dict[str, Any], path: str, kind: str) -> None:
    answer = await server.client(server.key()).post(
        path.replace("{id}", agent["agentId"]), content=BODIES[kind], headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 400, answer.text
    assert list(answer.json()) == ["error"]
    assert len(answer.text) < 500


async def test_duplicate_keys_and_unknown_fields_never_reach_what_is_not_asked(server: RunningServer) -> None:
    body = b'{"name": "a", "name": "b", "agentId": "mine", "status": "failed", "gatewayToken": "x", "userId": "y"}'
    api = server.client(server.key("dup"))
    answer = await api.post("/v0/agents", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 201
    made = answer.json()["agent"]
    assert (made["name"], made["status"]) == ("b", "running")
    assert made["agentId"] != "mine"
    assert made["gatewayToken"] != "x"
    await api.delete(f"/v0/agents/{made['agentId']}")


@pytest.mark.parametrize("content_type", ["text/plain", "multipart/form-data; boundary=x", "application/xml"])
async def test_another_content_type_is_refused(server: RunningServer, content_type: str) -> None:
    answer = await server.client(server.key()).post(
        "/v0/agents", content=b'{"name": "a"}', headers={"Content-Type": content_type}
    )
    assert answer.status_code in {400, 415}


async def test_compressed_bodies_are_refused(server: RunningServer) -> None:
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    answer = await server.client(server.key()).post("/v0/agents", content=b"\x1f\x8b" + bytes(100), headers=headers)
    assert answer.status_code == 415


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_over_the_limit_is_413(server: RunningServer, chunked: bool) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"name": "'
        for _ in range(3 * 1024):
            yield b"x" * 1024

    body = json.dumps({"name": "x" * 3 * 1024**2}).encode()
    answer = await server.client(server.key()).post(
        "/v0/agents", content=pieces() if chunked else body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 413
    assert list(answer.json()) == ["error"]


async def test_addresses_come_from_configuration_not_from_the_request(
    server: RunningServer, agent: dict[str, Any]
) -> None:
    headers = {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https", "Forwarded": "host=evil.example"}
    answer = await server.client(server.key()).get(f"/v0/agents/{agent['agentId']}", headers=headers)
    assert answer.json()["agent"]["url"] == f"http://{agent['agentId']}.agents.localhost:{server.port}"
    assert (await server.client(host="evil.example").get("/healthz")).status_code in {404, 421}


async def test_no_line_break_reaches_a_header(server: RunningServer) -> None:
    answer = await server.client(server.key()).get("/healthz", headers={"X-Request-Id": "a b\tc"})
    assert answer.headers["X-Request-Id"] != "a b\tc"


async def test_fuzzed_input_never_breaks_the_server(server: RunningServer, agent: dict[str, Any]) -> None:
    """Every route gets every kind of value in every field."""
    api = server.client(server.key())
    values = ["", "x", "\u202e", "../..", "%00", "-1", "9" * 400, "{}", "[]", "' OR 1=1", "\u00ff" * 300, "a" * 3000]
    for value in values:
        for path in (
            "/v0/agents/{v}",
            "/v0/agents/{v}/logs",
            "/v0/agents/{id}/files?path={v}",
            "/v0/llm/v1/models/{v}",
        ):
            target = path.replace("{id}", agent["agentId"])
            answer = await api.get(target.replace("{v}", _quoted(value)))
            assert answer.status_code < 500, (target, value, answer.text)
        for body in ({"command": value, "cwd": value}, {"filename": value, "contentBase64": value}, {"name": value}):
            answer = await api.post(f"/v0/agents/{agent['agentId']}/{_operation(body)}", json=body)
            assert answer.status_code < 500, (body, answer.text)


def _quoted(value: str) -> str:
    from urllib.parse import quote

    return quote(value, safe="")


def _operation(body: dict[str, str]) -> str:
    if "command" in body:
        return "console/exec"
    return "files/upload" if "filename" in body else "restart"
