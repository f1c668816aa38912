"""Malformed HTTP: wrong lengths, endless heads, hostile names and paths (C1-C11, D1-D10)."""

import asyncio
import json
from typing import Any

import pytest

from tests.support.server import RunningServer

MIB = 1024**2


@pytest.fixture(scope="module")
async def agent(server: RunningServer) -> dict[str, Any]:
    return (await server.client(server.key()).post("/v0/agents", json={"name": "a"})).json()["agent"]


async def send_raw(
    server: RunningServer, raw: bytes, *, host: str = "agents.localhost", token: str | None = None
) -> tuple[int, bytes]:
    """Send raw bytes; return status and body of the first response. `@` means a valid Host and Authorization."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        good = f"Host: {host}\r\nAuthorization: Bearer {token or server.key()}\r\n".encode()
        writer.write(raw.replace(b"@", good))
        async with asyncio.timeout(15):
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                (int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0
            )
            return int(head.split()[1]), await reader.readexactly(length)
    finally:
        writer.close()


@pytest.mark.parametrize(
    ("path", "limit", "message"),
    [("/v0/agents", MIB, "Request body too large"), ("/v0/agents/{id}/files/upload", 16 * MIB, "File too large")],
)
@pytest.mark.parametrize("framing", ["true", "short", "chunked"])
async def test_one_byte_too_many(
    server: RunningServer, agent: dict[str, Any], path: str, limit: int, message: str, framing: str
) -> None:
    """Declared, in chunks, or beyond the declared length: the excess is then an invalid next request."""
    line = (
        f"POST {path.replace('{id}', agent['agentId'])} HTTP/1.1\r\n".encode() + b"@Content-Type: application/json\r\n"
    )
    body = b'{"name": "' + b"x" * (limit - 12) + b'"}x'
    assert len(body) == limit + 1
    if framing == "chunked":
        raw = line + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    else:
        raw = line + b"Content-Length: %d\r\n\r\n" % (len(body) - (framing == "short")) + body
    status, answer = await send_raw(server, raw)
    if framing == "short":
        assert status == 400
    else:
        assert (status, json.loads(answer)) == (413, {"error": message})


@pytest.mark.parametrize(
    "body",
    [b"[" * MIB, b'{"name":' * 100_000, b'{"' + b"k" * (MIB - 20) + b'": 1}', b'{"name": 1e' + b"9" * 9000 + b"}"],
)
async def test_large_and_deep_json_is_refused_and_others_do_not_wait(server: RunningServer, body: bytes) -> None:
    api = server.client(server.key())
    hostile = [
        asyncio.create_task(api.post("/v0/agents", content=body, headers={"Content-Type": "application/json"}))
        for _ in range(5)
    ]
    async with asyncio.timeout(10):
        assert (await server.client().get("/healthz")).status_code == 200
    for answer in await asyncio.gather(*hostile):
        assert answer.status_code == (413 if body == b"[" * MIB else 400)
        assert len(answer.content) < 500


@pytest.mark.parametrize("kind", ["x-www-form-urlencoded", "xml", "json; charset=utf-16", "octet-stream"])
async def test_another_kind_of_body_changes_nothing(server: RunningServer, kind: str) -> None:
    api = server.client(server.key("kinds"))
    answer = await api.post("/v0/agents", content=b"\xff\xfen\x00", headers={"Content-Type": f"application/{kind}"})
    assert answer.status_code in {400, 415}
    assert (await api.get("/v0/agents")).json()["agents"] == []


GOOD_NAMES = ["a" * 100, "  padded  ", "日本語の助手", "Zoë O'Neil & Söhne (2)", "🦉" * 100, "אב"]
BAD_NAMES = [
    "a" * 101,
    "🦉" * 101,
    "",
    " ",
    "\u3000",
    "a\u202eb",
    "a\u200bb",
    "a\0b",
    "a\nb",
    "a\r\nX: y",
    "\ufeffa",
    "<b>",
    "a`b",
    "\U000e0041",
]


async def test_names_of_agents_are_validated(server: RunningServer) -> None:
    api = server.client(server.key("names"))
    for name in BAD_NAMES:
        answer = await api.post("/v0/agents", json={"name": name})
        assert answer.status_code == 400, name
        assert list(answer.json()) == ["error"]
    assert (await api.get("/v0/agents")).json()["agents"] == []
    for name in GOOD_NAMES:
        answer = await api.post("/v0/agents", json={"name": name})
        assert (answer.status_code, answer.json()["agent"]["name"]) == (201, name.strip())
        assert (await api.delete(f"/v0/agents/{answer.json()['agent']['agentId']}")).status_code == 200


async def test_a_giant_head_is_431_and_a_slow_one_408(server: RunningServer) -> None:
    status, _ = await send_raw(server, b"GET /v0/agents HTTP/1.1\r\n@X: " + b"x" * 200_000 + b"\r\n\r\n")
    assert status == 431
    assert (await send_raw(server, b"GET /v0/agents HTTP/1.1\r\n@X: "))[0] == 408


async def test_a_thousand_idle_connections_hinder_nobody(server: RunningServer) -> None:
    idle = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(1000)]
    for number, (_, writer) in enumerate(idle):
        writer.write(b"POST /v0/agents HTTP/1.1\r\nContent-" if number % 2 else b"")
    api = server.client(server.key())
    assert (await api.get("/v0/agents")).status_code == 200
    for _, writer in idle:
        writer.close()


@pytest.mark.parametrize(
    "path", ["/v0/agents", "/v0/agents/{id}", "/v0/agents/{id}/logs", "/v0/agents/{id}/gateway-token/rotate"]
)
async def test_unknown_methods_and_overrides(server: RunningServer, agent: dict[str, Any], path: str) -> None:
    api, target = server.client(server.key()), path.replace("{id}", agent["agentId"])
    for method in ("PUT", "PATCH", "OPTIONS", "PROPFIND", "TRACE"):
        answer = await api.request(method, target)
        assert answer.status_code in {400, 405}, method
        assert answer.status_code != 405 or answer.headers["Allow"], method
    for name in ("X-HTTP-Method-Override", "X-Method-Override", "X-HTTP-Method"):
        assert (
            await api.get(f"/v0/agents/{agent['agentId']}?_method=DELETE", headers={name: "DELETE"})
        ).status_code == 200
    assert (await api.get(f"/v0/agents/{agent['agentId']}")).status_code == 200


@pytest.mark.parametrize(
    "target",
    [
        "/v0/agents/{id}/../../metrics", "/v0/agents/{id}/%2e%2e", "/v0/agents/{id}/;/logs", "/v0/agents/{id}//logs",
        "//v0/agents",
        "/v0/agents/{id}%2flogs", "/v0/agents/{id}/logs%00", "/v0/agents/{id}/logs.", "/v0/agents/{id}/logs/",
        "/V0/agents",
        "/v0/agents/{id}\\logs", "/v0/agents/{id}/logs%20", "/v0/agents/%7bagentId%7d/logs", "/v0/./agents",
        "/v0/agents/{id}/logs;a=b",
    ],
)  # fmt: skip
async def test_odd_paths_lead_nowhere(server: RunningServer, agent: dict[str, Any], target: str) -> None:
    raw = target.replace("{id}", agent["agentId"]).encode()
    status, _ = await send_raw(server, b"GET " + raw + b" HTTP/1.1\r\n@\r\n")
    assert status in {400, 404}
    own, token = f"{agent['agentId']}.agents.localhost", agent["gatewayToken"]
    status, body = await send_raw(server, b"GET " + raw + b" HTTP/1.1\r\n@\r\n", host=own, token=token)
    assert status in {400, 401, 404}, body  # 401: it may be another agent's name


async def test_addresses_are_what_the_configuration_says(server: RunningServer, agent: dict[str, Any]) -> None:
    for host in ("agents.localhost:1", "AGENTS.LocalHost.", "localhost:99999"):
        status, body = await send_raw(
            server, f"GET /v0/agents/{agent['agentId']} HTTP/1.1\r\n@\r\n".encode(), host=host
        )
        assert status == 200
        assert json.loads(body)["agent"]["url"] == f"http://{agent['agentId']}.agents.localhost:{server.port}"


@pytest.mark.parametrize("kind", ["device", "socket", "sparse", "loop", "growing", "unreadable"])
async def test_files_that_are_none_answer_at_once(server: RunningServer, agent: dict[str, Any], kind: str) -> None:
    make = {
        "device": "ln -sfn /dev/zero device",
        "socket": "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('socket')\"",
        "sparse": "truncate -s 4000M sparse",
        "loop": "ln -sfn loop loop",
        "growing": "(timeout 5 yes > growing &) ; sleep 0.2",
        "unreadable": "echo x > unreadable; chmod 0 unreadable",
    }[kind]
    own = server.agent_client(agent)
    await own.post("/v0/console/exec", json={"command": make})
    async with asyncio.timeout(10):
        answer = await own.get(f"/v0/files?path={kind}")
    assert answer.status_code in {400, 404, 413}, answer.text
    assert list(answer.json()) == ["error"]
    await own.post("/v0/console/exec", json={"command": f"rm -f {kind}"})


async def test_a_folder_that_is_swapped_for_a_link_while_it_is_walked(
    server: RunningServer, agent: dict[str, Any]
) -> None:
    own = server.agent_client(agent)
    swap = "mkdir -p real; echo mine > real/passwd; while :; do ln -sfn real way; ln -sfn /etc way; done"
    swapping = asyncio.create_task(own.post("/v0/console/exec", json={"command": swap, "timeoutSeconds": 3}))
    seen: set[int] = set()
    while not swapping.done():
        answer = await own.get("/v0/files?path=way/passwd")
        seen.add(answer.status_code)
        assert answer.status_code == 404 or answer.content == b"mine\n"
        put = await own.post("/v0/files/upload", json={"filename": "f", "contentBase64": "YQ=="})
        assert put.status_code == 200
    assert seen == {200, 404}


@pytest.mark.parametrize("command", ["true\0", "", "\t\n ", "x" * 65_537])
async def test_commands_that_are_none(server: RunningServer, agent: dict[str, Any], command: str) -> None:
    answer = await server.agent_client(agent).post("/v0/console/exec", json={"command": command})
    assert (answer.status_code, answer.json()) == (400, {"error": "Invalid command"})


async def test_a_command_of_many_children_ends_with_its_time(server: RunningServer, agent: dict[str, Any]) -> None:
    own = server.agent_client(agent)
    command = "trap '' TERM INT HUP; for i in 1 2 3 4 5; do (setsid sleep 444 &) ; done; sleep 444"
    ended = (await own.post("/v0/console/exec", json={"command": command, "timeoutSeconds": 0.5})).json()
    assert (ended["exitCode"], ended["timedOut"]) == (124, True)
    left = (
        await own.post(
            "/v0/console/exec", json={"command": "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'sleep 44[4]'"}
        )
    ).json()
    assert left["stdout"] == "0\n"
