"""Every operation with a key of each scope, a session of each role and the tokens of an agent.

What is generated follows the URL map's declared rights; what is written by hand holds the declarations themselves.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2 as httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from roost.drivers.runtime.fake import FakeRuntime
from roost.identity.caller import Plan
from roost.identity.model import DEFAULT_TENANT, SCOPES
from tests.contract.endpoints import Row, fill_path, routes
from tests.contract.test_sessions import Browser, signed_in
from tests.support.server import RunningServer, running

READ, WRITE = frozenset({"read"}), frozenset({"write", "execute", "credential", "manage"})
ROLES: Mapping[str, frozenset[str]] = {"viewer": READ, "editor": (READ | WRITE) - {"manage"}, "owner": READ | WRITE}
KEYS = ("", *sorted(SCOPES))
FOR_OPERATORS = "/v0/system"
"""Refuses a key with scopes, whatever they are."""
QUERIES = {("WEBSOCKET", "/v0/agents/{agentId}/console/exec"): "?command=true"}
"""What is checked before the credential of a WebSocket."""
NOBODY = "00000000000000000000000000000000"
FIELDS = {"network": "public", "kind": "ips", "channel": "telegram"}
ENDS_SESSIONS = ("DELETE", "/v0/session/all")


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    folder = tmp_path_factory.mktemp("rights")
    async with running(folder / "data", runtime=FakeRuntime(folder / "run")) as server:
        yield server


@pytest.fixture(scope="module")
async def agent(server: RunningServer) -> dict[str, Any]:
    api = server.client(server.key(DEFAULT_TENANT))
    made = await api.post("/v0/agents", json={"name": "Ada"})
    assert made.status_code == 201, made.text
    return made.json()["agent"]


def operations() -> list[Row]:
    """Return all operations that accept a key: all that need a right but those for tokens of agents alone."""
    found = [row for row in routes().values() if any(map(_is_for_keys, row["credentials"]))]
    assert len(found) > 200
    return found


def _is_for_keys(credential: str) -> bool:
    return credential in ("jwt", "any scope") or credential.startswith("org:")


def target(row: Row, agent_id: str = NOBODY) -> str:
    """Return a path at which nothing is, so that an allowed request changes nothing."""
    fields = {**FIELDS, "agentId": agent_id}
    path = fill_path(row["path"], fields, NOBODY)
    return path + QUERIES.get((row["method"], row["path"]), "")


async def status_of(client: httpx.AsyncClient, row: Row, path: str, **headers: str) -> int:
    if row["method"] == "WEBSOCKET":
        return await handshake(path, {**client.headers, **headers})
    body: dict[str, Any] = {"json": {}} if row["method"] in ("POST", "PUT", "PATCH") else {}
    async with client.stream(row["method"], path, headers=headers, **body) as answer:  # some have no end
        return answer.status_code


async def handshake(path: str, headers: Mapping[str, str]) -> int:
    """Return the status of a WebSocket's handshake with a client's headers, 101 if it is accepted."""
    sent = {name: value for name, value in headers.items() if name in ("authorization", "cookie")}
    url = f"ws://{headers['host']}{path}"
    origin = Origin(headers["Origin"]) if "Origin" in headers else None
    try:
        async with connect(url, origin=origin, additional_headers=sent, host="127.0.0.1", proxy=None):
            return 101
    except InvalidStatus as refused:
        return refused.response.status_code


def covers_right(row: Row, scopes: frozenset[str]) -> bool:
    """Return whether the scopes of a key give what an operation declares; no scopes are all."""
    if not scopes or row["credentials"] == ["any scope"]:
        return True
    if row["path"].startswith(FOR_OPERATORS):
        return False
    scope = next((kind for kind in row["credentials"] if kind.startswith("org:")), None)
    if scope is None:
        action = "read" if row["right"] in READ else "write"
        narrow = set() if row["path"].startswith("/v0/keys/") else {f"org:agents:{action}"}
        return bool(scopes & (narrow | {f"org:{action}"}))
    wanted = {scope, scope.replace(":read", ":write")}
    return bool(scopes & (wanted | {f"org:{one.rsplit(':', 1)[-1]}" for one in wanted}))


def test_each_operation_that_needs_a_right_is_walked() -> None:
    """Those that are not walked with keys are public, or for tokens of an agent alone."""
    walked = {id(row) for row in operations()}
    rest = [row for row in routes().values() if id(row) not in walked and row["credentials"]]
    assert {kind for row in rest for kind in row["credentials"]} <= {
        *("basic", "gateway", "gateway bearer", "platform", "relay", "session"),
    }
    assert {row["right"] for row in operations()} == READ | WRITE | {"none"}
    public = {row["right"] for row in routes().values() if not row["credentials"]}
    assert public == {"none"}


@pytest.mark.parametrize("scope", KEYS, ids=lambda scope: scope or "unrestricted")
async def test_a_key_does_what_its_scope_allows(server: RunningServer, scope: str) -> None:
    scopes = frozenset({scope} - {""})
    token = server.key(DEFAULT_TENANT, Plan.PAID, scopes)
    wrong = []
    for row in operations():
        client = server.client(token, "api.localhost" if "storage" in row["addresses"] else "agents.localhost")
        status = await status_of(client, row, target(row))
        if (status not in (401, 403)) is not covers_right(row, scopes):
            wrong.append((row["method"], row["path"], row["right"], status))
    assert wrong == []


@pytest.mark.parametrize("role", ROLES)
async def test_a_session_does_what_its_role_allows(server: RunningServer, role: str) -> None:
    browser, wrong = await signed_in(server, server.key(DEFAULT_TENANT, Plan.PAID), role), []
    headers = {"Origin": browser.origin, "X-CSRF-Token": browser.csrf}
    rows = sorted(operations(), key=lambda row: (row["method"], row["path"]) == ENDS_SESSIONS)
    for row in rows:
        status = await status_of(browser.http, row, target(row), **headers)
        is_allowed = row["right"] == "none" or row["right"] in ROLES[role]
        if row["path"].startswith(FOR_OPERATORS):
            is_allowed = role == "owner"
        if (status not in (401, 403)) is not is_allowed:
            wrong.append((row["method"], row["path"], row["right"], status))
    assert wrong == []


async def test_a_gateway_token_does_all_but_manage(server: RunningServer, agent: dict[str, Any]) -> None:
    """At its agent's address: what accepts it, and nothing else."""
    client, wrong = server.agent_client(agent), []
    for row in routes().values():
        if "{agentId}" not in row["path"] or "storage" in row["addresses"] or row["credentials"] == ["basic"]:
            continue
        status = await status_of(client, row, target(row, agent["agentId"]))
        is_accepted = bool({"gateway", "gateway bearer"} & {*row["credentials"]})
        assert not is_accepted or row["right"] != "manage"
        if (status not in (401, 403)) is not is_accepted:
            wrong.append((row["method"], row["path"], row["right"], status))
    assert wrong == []
    assert (await client.get("/v0/logs")).status_code == 200


async def test_a_platform_token_reads_and_writes(server: RunningServer, agent: dict[str, Any]) -> None:
    issued = await server.agent_client(agent).post("/v0/platform/token")
    token, wrong = issued.json()["token"], []
    for row in operations():
        is_storage = "storage" in row["addresses"]
        client = server.client(token, "api.localhost" if is_storage else "agents.localhost")
        status = await status_of(client, row, target(row, agent["agentId"]))
        is_accepted = "platform" in row["credentials"]
        assert not is_accepted or row["right"] in ("read", "write")
        if (status not in (401, 403)) is not is_accepted:
            wrong.append((row["method"], row["path"], row["right"], status))
    assert wrong == []


READERS = (frozenset({"org:agents:read"}), frozenset({"org:read"}))
REVEALING = ("gateway-token", "export", "export?snapshotCid=x")
RUNNING = ("console/stream", "console/exec?command=id", "console/exec?command=id&stdin=true")


@pytest.mark.parametrize("scopes", READERS, ids=str)
async def test_a_key_that_may_only_read_gets_no_shell_and_no_token(
    server: RunningServer, agent: dict[str, Any], scopes: frozenset[str]
) -> None:
    key, path = server.key(DEFAULT_TENANT, Plan.PAID, scopes), f"/v0/agents/{agent['agentId']}"
    reader, refused = server.client(key), {"error": "Permission denied"}
    for name in REVEALING:
        answer = await reader.get(f"{path}/{name}")
        assert (answer.status_code, answer.json()) == (403, refused), name
        assert (await reader.head(f"{path}/{name}")).status_code == 403
    for name, body in (
        ("gateway-token/rotate", {}),
        ("sign-in-link", {}),
        ("console/exec", {"command": "id"}),
        ("chat", {"messages": [{"role": "user", "content": "hello"}]}),
        ("chat/messages", {"conversation": "c", "content": "hello"}),
        ("devices/approve-all", {}),
        ("scripts/retry", {}),
    ):
        answer = await reader.post(f"{path}/{name}", json=body)
        assert (answer.status_code, answer.json()) == (403, refused), name
    spent = await reader.post("/v0/llm/v1/chat/completions", json={"model": "m", "messages": []})
    assert spent.status_code == 403
    signing = await server.client(key, "api.localhost").post("/v3/files/sign", json={})
    assert signing.status_code == 403
    for name in RUNNING:
        assert await handshake(f"{path}/{name}", reader.headers) == 403, name
    assert (await reader.get(path)).json()["agent"]["gatewayToken"] is None
    assert agent["gatewayToken"] not in (await reader.get("/v0/agents")).text


@pytest.mark.parametrize("scopes", READERS, ids=str)
async def test_a_key_that_may_only_read_reads_everything_else(
    server: RunningServer, agent: dict[str, Any], scopes: frozenset[str]
) -> None:
    reader, path = server.client(server.key(DEFAULT_TENANT, Plan.PAID, scopes)), f"/v0/agents/{agent['agentId']}"
    for name in (
        "",
        "/logs",
        "/files/list?path=.",
        "/snapshots",
        "/channels",
        "/config",
        "/devices",
        "/status",
        "/tasks",
    ):
        assert (await reader.get(path + name)).status_code == 200, name
    for socket in (f"{path}/logs", f"{path}/events", "/v0/events"):
        assert await handshake(socket, reader.headers) == 101, socket
    for stream in (f"{path}/events", f"{path}/files/watch?path=.", f"{path}/channels/watch"):
        async with reader.stream("GET", stream) as answer:
            assert answer.status_code == 200, stream


async def test_a_key_that_may_write_runs_commands_and_gets_the_token(
    server: RunningServer, agent: dict[str, Any]
) -> None:
    for scopes in (frozenset({"org:agents:write"}), frozenset({"org:write"})):
        writer, path = server.client(server.key(DEFAULT_TENANT, Plan.PAID, scopes)), f"/v0/agents/{agent['agentId']}"
        assert (await writer.get(f"{path}/gateway-token")).json()["token"] == agent["gatewayToken"]
        ran = await writer.post(f"{path}/console/exec", json={"command": "echo hello"})
        assert ran.json()["stdout"] == "hello\n"
        assert await handshake(f"{path}/console/exec?command=id", writer.headers) == 101


async def test_a_viewer_gets_no_shell_and_no_token(server: RunningServer, agent: dict[str, Any]) -> None:
    viewer, path = await signed_in(server, server.key(DEFAULT_TENANT), "viewer"), f"/v0/agents/{agent['agentId']}"
    for name in REVEALING:
        assert (await viewer.send("GET", f"{path}/{name}")).status_code == 403, name
    headers = {**viewer.http.headers, "Origin": viewer.origin}
    for name in RUNNING:
        assert await handshake(f"{path}/{name}", headers) == 403, name
    assert await handshake(f"{path}/logs", headers) == 101
    editor = await signed_in(server, server.key(DEFAULT_TENANT), "editor")
    assert (await editor.send("GET", f"{path}/gateway-token")).status_code == 200
    await check_system_is_for_owners(editor)


async def check_system_is_for_owners(editor: Browser) -> None:
    refused = await editor.send("GET", "/v0/system")
    assert refused.json() == {"error": "Permission denied: your role does not allow it"}
