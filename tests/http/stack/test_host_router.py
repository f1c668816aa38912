import json
from ipaddress import ip_network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.right import Right
from roost.http.stack.address import HostAddresses
from roost.http.stack.client_address import OWN_PROXY
from roost.http.stack.host_router import HostRouter, is_plain
from roost.http.stack.url_map import CONTENT
from roost.web.url_rule import HostKind, address_of
from tests.http.asgi import call

ADDRESSES = HostAddresses("localhost", 8642)
FILE = "00000000-0000-4000-8000-000000000000"


async def reached(scope: Any, _receive: Any, send: Any) -> None:
    """The application: says where it was reached."""
    host = address_of(scope).host
    told = {
        "path": scope.get("path"),
        "raw": scope.get("raw_path", b"").decode(),
        "host_kind": host.kind,
        "agent": host.agent_id,
        "origin": host.origin,
        "scheme": scope.get("scheme"),
        "client": scope.get("client"),
    }
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": json.dumps(told).encode()})


APP = HostRouter(reached, ADDRESSES)


async def get_json(target: str, app: Any = APP, **more: Any) -> dict[str, Any]:
    sent = await call(app, target, **more)
    assert sent.status == 200, sent.body
    return json.loads(sent.body)


async def test_each_address_is_marked() -> None:
    local = await get_json("/v0/agents")
    assert (local["host_kind"], local["agent"], local["origin"]) == (HostKind.LOCAL, None, "http://localhost:8642")
    management = await get_json("/v0/agents", host="agents.localhost:8642")
    assert (management["host_kind"], management["agent"]) == (HostKind.MANAGEMENT, None)
    agent = await get_json("/v0/agents/a1/logs", host="a1.agents.localhost")
    assert (agent["host_kind"], agent["agent"]) == (HostKind.AGENT, "a1")
    assert agent["origin"] == "http://a1.agents.localhost:8642"


@pytest.mark.parametrize("client", [("192.0.2.1", 5), ("::ffff:192.0.2.1", 5), ("testclient", 5), None])
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8642", "[::1]"])
async def test_who_comes_from_elsewhere_is_not_local(host: str, client: tuple[str, int] | None) -> None:
    assert (await get_json("/v0/agents", host=host, client=client))["host_kind"] == HostKind.MANAGEMENT


async def test_a_client_of_our_own_proxy_is_never_local() -> None:
    forwarded = [("x-forwarded-for", "127.0.0.1")]
    answer = await get_json("/v0/agents", host="localhost", client=(OWN_PROXY, 0), headers=forwarded)
    assert (answer["host_kind"], answer["client"]) == (HostKind.MANAGEMENT, ["127.0.0.1", 0])


@pytest.mark.parametrize("client", [("127.0.0.1", 5), ("127.1.2.3", 5), ("::1", 5), ("::ffff:127.0.0.1", 5)])
async def test_local_is_who_asks_directly_from_here(client: tuple[str, int]) -> None:
    assert (await get_json("/v0/agents", client=client))["host_kind"] == HostKind.LOCAL
    for name in ("X-Forwarded-For", "Forwarded", "Via"):  # a proxy on this machine speaks for somebody else
        assert (await get_json("/v0/agents", client=client, headers=[(name, "x")]))["host_kind"] == HostKind.MANAGEMENT


@pytest.mark.parametrize("host", ["evil.example", "", None, "apis.localhost", "user@localhost"])
async def test_an_unknown_host_is_not_found(host: str | None) -> None:
    sent = await call(APP, "/v0/agents", host=host)
    assert sent.status == 404
    assert json.loads(sent.body) == {"error": "Not found"}


@pytest.mark.parametrize("host", ["api.localhost", "a1.agents.localhost", "g.gateways.localhost"])
async def test_metrics_are_at_the_management_address(host: str) -> None:
    assert (await call(APP, "/metrics", host=host)).status == 404
    assert (await call(APP, "/metrics", host="agents.localhost")).status == 200


async def test_the_row_of_the_map_goes_into_the_scope() -> None:
    assert (await call(APP, "/v3/files", method="POST")).scope["state"]["address"].rule.body.size is None
    own_origin = await call(APP, "/v3/files//x", host="bafy.ipfs.g.gateways.localhost")
    assert (own_origin.status, own_origin.scope["state"]["address"].rule) == (200, CONTENT)
    nowhere = await call(APP, "/v3/files", host="evil.example")
    assert json.loads(nowhere.body) == {"error": {"code": 404, "message": "Not found"}}


async def test_two_hosts_are_no_host() -> None:
    assert (await call(APP, "/", headers=[("host", "localhost")])).status == 404


@pytest.mark.parametrize(
    ("sent", "becomes"),
    [
        ("/v0/logs", "/v0/agents/a1/logs"),
        ("/v0/platform/token", "/v0/agents/a1/platform/token"),
        ("/v0/files?path=x", "/v0/agents/a1/files"),
        ("/v0/x%20y/z", None),
        ("/v0/files/x%20y", "/v0/agents/a1/files/x y"),
        ("/v0/agents/a1/logs", "/v0/agents/a1/logs"),
        ("/v0/agents/b2/logs", "/v0/agents/b2/logs"),  # authentication refuses it
        ("/v0/agents", "/v0/agents"),
        ("/v0/llm/v1/models", "/v0/llm/v1/models"),
        ("/v0/llmx", "/v0/agents/a1/llmx"),
    ],
)
async def test_short_paths_on_an_agents_address(sent: str, becomes: str | None) -> None:
    if becomes is None:
        assert (await call(APP, sent, host="a1.agents.localhost")).status == 404
        return
    answer = await get_json(sent, host="a1.agents.localhost")
    assert answer["path"] == becomes
    assert answer["raw"] == becomes.replace(" ", "%20")


@pytest.mark.parametrize(
    ("method", "old", "current"),
    [
        ("GET", "/v3/files", "/v3/files/private"),
        ("PUT", f"/v3/files/{FILE}", f"/v3/files/private/{FILE}"),
        ("POST", "/v3/files/groups", "/v3/groups/private"),
        ("DELETE", "/v3/files/groups/g/ids/f", "/v3/groups/private/g/ids/f"),
        ("HEAD", "/v3/files/groups/g", "/v3/groups/private/g"),
        ("PUT", "/v3/files/swap/c", "/v3/files/private/swap/c"),
        ("POST", "/v3/ipfs/signature/c", "/v3/files/public/signature/c"),
        ("GET", "/v3/ipfs/gateways", "/v3/gateways"),
        ("GET", "/v3/ipfs/gateway_analytics_top", "/v3/analytics/gateways/top"),
    ],
)
async def test_an_old_path_is_rewritten(method: str, old: str, current: str) -> None:
    answer = await get_json(old, method=method, host="api.localhost")
    assert (answer["path"], answer["raw"]) == (current, current)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v3/files"),  # an upload
        ("POST", f"/v3/files/{FILE}"),  # an upload to a signed URL
        ("HEAD", f"/v3/files/{FILE}"),  # the state of a resumable upload
        ("DELETE", f"/v3/files/{FILE}/{'0' * 64}"),  # the end of an upload in parts
        ("GET", "/v3/files/limits"),
        ("GET", "/v3/files/private"),
        ("POST", "/v3/ipfs/gateways"),
        ("GET", "/v3/ipfs/gateways/exists/x"),
        ("GET", "/v3/filesystem"),
        ("GET", "/v0/agents"),
        ("GET", "/"),
    ],
)
async def test_other_paths_stay(method: str, path: str) -> None:
    assert (await get_json(path, method=method, host="localhost"))["path"] == path


async def test_the_methods_of_an_old_path_are_known_for_the_others() -> None:
    other = (await call(APP, f"/v3/files/{FILE}", method="PATCH", host="api.localhost")).scope
    assert address_of(other).other_methods == {"GET", "PUT", "DELETE"}
    current = (await call(APP, f"/v3/files/{FILE}", method="GET", host="api.localhost")).scope
    assert (address_of(current).other_methods, address_of(current).right) == (frozenset(), Right.READ)


@pytest.mark.parametrize("path", ["/", "/v1/x", "/v0", "/index.html", "/openapi", "/metrics"])
async def test_the_rest_of_an_agents_address_is_not_ours(path: str) -> None:
    assert (await call(APP, path, host="a1.agents.localhost")).status == 404


@pytest.mark.parametrize("host", ["localhost", "agents.localhost"])
async def test_paths_elsewhere_stay_as_they_are(host: str) -> None:
    assert (await get_json("/v0/logs", host=host))["path"] == "/v0/logs"


async def test_a_relay_is_its_agent_whatever_it_says() -> None:
    relay = {"relay_agent": "a1"}
    for host in ("localhost", "b2.agents.localhost", None):
        answer = await get_json("/v0/llm/v1/models", host=host, state=relay)
        assert (answer["host_kind"], answer["agent"]) == (HostKind.RELAY, "a1")
    closed = ("/", "/healthz", "/openapi", "/metrics", "/v0", "/v3/files", "/v1x", "/api/v2/models")
    for path in (*closed, "/v0/llm/../agents/a1", "/v0/llm/%2e%2e/agents", "/v1/../v0/agents"):
        assert (await call(APP, path, state=relay)).status == 404


@pytest.mark.parametrize(
    ("path", "full"),
    [
        ("/v0/platform/token", "/v0/agents/a1/platform/token"),
        ("/v0/status", "/v0/agents/a1/status"),
        ("/v0/agents/a1/status", "/v0/agents/a1/status"),
        ("/v0/secrets", "/v0/secrets"),
        ("/v1/models", "/v0/llm/v1/models"),
        ("/v1", "/v0/llm/v1"),
    ],
)
async def test_a_container_asks_for_its_agent_at_short_paths(path: str, full: str) -> None:
    assert (await get_json(path, state={"relay_agent": "a1"}))["path"] == full


async def test_a_container_does_not_pass_on_what_came_from_outside() -> None:
    relay, forwarded = {"relay_agent": "a1"}, [("X-Forwarded-Host", "a1.agents.localhost")]
    for path in ("/v0/platform/token", "/v1/models", "/api/v1/skills"):
        answer = await call(APP, path, state=relay, headers=forwarded)
        assert answer.status == 403
        assert b"does not open the agent's own API" in answer.body
        assert (await call(APP, path, state=relay, headers=[("X-Forwarded-For", "192.0.2.1")])).status == 200
    assert (await call(APP, "/v0/logs", host="a1.agents.localhost", headers=forwarded)).status == 200


@pytest.mark.parametrize("path", ["/v0/issues", "/v0/issues/", "/v0/issues/1/comments"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_issues_are_closed_to_everybody(path: str, method: str) -> None:
    for host in ("localhost", "agents.localhost", "a1.agents.localhost"):
        answer = await call(APP, path, method=method, host=host)
        assert (answer.status, json.loads(answer.body)) == (404, {"error": "Not found"})
    assert (await call(APP, path, state={"relay_agent": "a1"})).status == 404
    assert (await get_json("/v0/issuesx"))["path"] == "/v0/issuesx"


@pytest.mark.parametrize(
    "target",
    [
        "/v0/agents/%2e%2e/secrets",
        "/v0/agents/%2E%2E/secrets",
        "/v0/agents/../secrets",
        "/v0/./agents",
        "/v0//agents",
        "//v0/agents",
        "/v0/agents/a%2fb",
        "/v0/agents/a%5cb",
        "/v0/agents\\x",
        "/v0/agents/%00",
        "/v0/agents/%0d%0aX:1",
        "/v0/agents/%252e",
        "/v0/agents/%ff",
        "/%76%30/agents",
        "/v0/%61gents",
        "/v0%2fagents",
        "/v0/agents/x%3fy",
    ],
)
@pytest.mark.parametrize("host", ["localhost", "agents.localhost", "a1.agents.localhost"])
async def test_ambiguous_targets_are_not_found(target: str, host: str) -> None:
    assert (await call(APP, target, host=host)).status == 404


@given(st.binary(max_size=30))
def test_a_plain_path_has_no_way_out(data: bytes) -> None:
    path = b"/" + data.replace(b"?", b"")
    decoded = path.decode("utf-8", "replace")
    if is_plain(path, decoded):
        assert ".." not in decoded.split("/")
        assert "//" not in decoded


async def test_a_websocket_to_nowhere_is_refused_before_it_opens() -> None:
    sent = await call(APP, "/v0/logs", host="evil.example", kind="websocket")
    assert sent.messages[0]["type"] == "websocket.http.response.start"
    assert sent.status == 404


async def test_forwarding_headers_count_from_trusted_proxies_only() -> None:
    forged = [("x-forwarded-for", "6.6.6.6"), ("x-forwarded-host", "agents.localhost"), ("x-forwarded-proto", "https")]
    answer = await get_json("/v0/agents", headers=forged, host="agents.localhost", client=("192.0.2.1", 5))
    assert answer["client"] == ["192.0.2.1", 5]
    assert answer["origin"] == "http://agents.localhost:8642"
    assert answer["scheme"] == "http"
    trusting = HostRouter(reached, HostAddresses("example.org", scheme="https"), [ip_network("192.0.2.0/24")])
    proxy = ("192.0.2.1", 5)
    answer = await get_json("/v0/agents", trusting, headers=forged, host="agents.example.org", client=proxy)
    assert answer["client"] == ["6.6.6.6", 0]
    assert answer["scheme"] == "https"


async def test_no_cookie_holds_a_backslash() -> None:
    sent = await call(APP, "/v0/agents", headers=[("cookie", 'a=1; b="\\a\\b"; gw_token=x')])
    assert dict(sent.scope["headers"])[b"cookie"] == b"a=1; gw_token=x"


async def test_other_kinds_of_scope_pass() -> None:
    seen: list[str] = []

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        seen.append(scope["type"])

    await HostRouter(app, ADDRESSES)({"type": "lifespan"}, None, None)  # pyright: ignore[reportArgumentType] - not used
    assert seen == ["lifespan"]
