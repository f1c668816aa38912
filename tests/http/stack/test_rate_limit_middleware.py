"""What a request of the application counts on, and how a refusal reads on each kind of address."""

import json
from ipaddress import ip_network
from typing import Any

import pytest

from roost.http.stack.address import HostAddresses
from roost.http.stack.middleware import add_middleware
from roost.http.stack.rate_limits import RateLimits
from roost.identity.auth_request import AuthRequest
from roost.identity.caller import Caller, CallerKind
from roost.net.addresses import Network
from roost.web.url_rule import UrlFamily
from tests.http.asgi import Sent, call

REMOTE, OTHER = ("192.0.2.7", 5), ("192.0.2.8", 5)
ADDRESSES = HostAddresses("localhost", 8642)


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Answer with a body of 1000 bytes, after reading that of the request; accept a WebSocket."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        return
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"x" * 1000})


async def admit(_request: AuthRequest, _family: UrlFamily) -> Caller:
    return Caller(CallerKind.SERVICE, "acme")


def find_known(request: AuthRequest) -> bytes | None:
    """Know the credentials that begin with `good`."""
    token = request.headers.get("authorization", "").removeprefix("Bearer ")
    return token.encode() if token.startswith("good") else None


def limited(trusted: tuple[Network, ...] = (), **limits: Any) -> Any:
    return add_middleware(app, ADDRESSES, admit, find_known=find_known, limits=RateLimits(**limits), trusted=trusted)


async def get(app: Any, target: str = "/v0/agents", token: str = "", **more: Any) -> Sent:
    headers = [*more.pop("headers", ()), *([("authorization", f"Bearer {token}")] if token else [])]
    return await call(app, target, headers=headers, **{"client": REMOTE, "host": "agents.localhost", **more})


async def test_each_valid_credential_has_its_own_limit_and_is_told_it() -> None:
    app = limited(caller_requests=2)
    answers = [await get(app, token="good-1") for _ in range(3)]
    assert [answer.status for answer in answers] == [200, 200, 429]
    assert [answer.headers["ratelimit-remaining"] for answer in answers] == ["1", "0", "0"]
    assert answers[0].headers["ratelimit"] == '"requests";r=1;t=30'
    assert answers[0].headers["ratelimit-policy"] == '"requests";q=2;w=60'
    assert 29 <= int(answers[2].headers["retry-after"]) <= 30
    assert (await get(app, token="good-2")).status == 200
    assert (await get(app, token="good-1", client=OTHER)).status == 429  # wherever it is used


async def test_invented_credentials_count_on_the_client_and_harm_nobody_else() -> None:
    app = limited(caller_requests=2)
    assert [(await get(app, token=f"bad-{number}")).status for number in range(3)] == [200, 200, 429]
    assert (await get(app)).status == 429
    assert (await get(app, token="good-1")).status == 200
    assert (await get(app, client=OTHER)).status == 200


@pytest.mark.parametrize(
    ("host", "target", "body"),
    [
        ("agents.localhost", "/v0/agents", {"error": "MESSAGE"}),
        ("agent-1.agents.localhost", "/v0/logs", {"error": "MESSAGE"}),
        ("api.localhost", "/v3/files", {"error": {"code": 429, "message": "MESSAGE"}}),
        ("uploads.localhost", "/v3/files", {"error": {"code": 429, "message": "MESSAGE"}}),
        ("api.localhost", "/data/pinList", {"error": {"reason": "RATE_LIMITED", "details": "MESSAGE"}}),
        (
            "agents.localhost",
            "/v0/llm/v1/models",
            {"error": {"message": "MESSAGE", "type": "rate_limit_error", "param": None, "code": None}},
        ),
        ("localhost", "/openapi", {"error": "MESSAGE"}),
    ],
)
async def test_a_refusal_has_the_form_of_its_address(host: str, target: str, body: Any) -> None:
    app = limited(caller_requests=1)
    assert (await get(app, target, host=host)).status == 200
    refusal = await get(app, target, host=host)
    message = "Too many requests: the limit is 1 in 60 seconds"
    assert (refusal.status, json.loads(refusal.body)) == (429, json.loads(json.dumps(body).replace("MESSAGE", message)))
    assert refusal.headers["retry-after"] == "60"


async def test_a_storage_gateway_answers_in_plain_text_that_pages_can_read() -> None:
    app = limited(host_requests=2)
    for name in ("one", "one", "two"):
        assert (await get(app, "/ipfs/x", host=f"{name}.gateways.localhost")).status == 200
    refusal = await get(app, "/ipfs/x", host="one.gateways.localhost", client=OTHER)
    assert (refusal.status, refusal.headers["content-type"]) == (429, "text/plain; charset=utf-8")
    assert refusal.body == b"Too many requests to this address: the limit is 2 in 60 seconds\n"
    assert refusal.headers["access-control-allow-origin"] == "*"
    assert (await get(app, host="agents.localhost")).status == 200


async def test_visitors_of_storage_gateways_count_by_address_whatever_they_send() -> None:
    app = limited(caller_requests=1)
    assert (await get(app, "/ipfs/x", "good-1", host="one.gateways.localhost")).status == 200
    assert (await get(app, "/ipfs/x", "good-2", host="one.gateways.localhost")).status == 429


async def test_an_agent_inside_counts_as_that_agent() -> None:
    app = limited(caller_requests=1)
    inside = {"host": None, "client": None}
    for agent, status in (("a1", 200), ("a1", 429), ("a2", 200)):
        answer = await get(app, "/v0/status", token="good-1", state={"relay_agent": agent}, **inside)
        assert answer.status == status


async def test_programs_of_this_machine_are_limited_only_if_that_is_set() -> None:
    local: dict[str, Any] = {"client": ("127.0.0.1", 5)}
    free, strict = limited(caller_requests=1), limited(caller_requests=1, limits_loopback=True)
    answers = [await get(free, **local) for _ in range(3)]
    assert {answer.status for answer in answers} == {200}
    assert "ratelimit" not in answers[0].headers
    assert [(await get(strict, **local)).status for _ in range(2)] == [200, 429]
    forwarded = [("x-forwarded-for", "127.0.0.1")]
    assert [(await get(free, headers=forwarded, **local)).status for _ in range(2)] == [200, 429]


async def test_behind_a_trusted_proxy_each_client_counts() -> None:
    app = limited((ip_network("127.0.0.0/8"),), caller_requests=1)

    async def ask(client: str) -> int:
        headers = [("x-forwarded-for", f"6.6.6.6, {client}")]
        return (await get(app, headers=headers, client=("127.0.0.1", 5))).status

    assert [await ask(client) for client in ("192.0.2.1", "192.0.2.1", "192.0.2.2")] == [200, 429, 200]
    assert [await ask(f"2001:db8::{number}") for number in (1, 2)] == [200, 429]  # one network


async def test_bytes_of_requests_and_responses_count() -> None:
    app = limited(caller_bytes=5000)
    body = {"method": "POST", "headers": [("content-length", "3500")], "body": [b"x" * 3500]}
    answers = [await get(app, token="good-1", **body) for _ in range(3)]
    assert [answer.status for answer in answers] == [200, 200, 429]
    assert answers[2].headers["ratelimit"].startswith('"bytes";r=0;t=')


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
async def test_health_is_never_limited(path: str) -> None:
    app = limited(caller_requests=1)
    answers = [await get(app, path) for _ in range(3)]
    assert {answer.status for answer in answers} == {200}
    assert "ratelimit" not in answers[0].headers


async def test_a_websocket_is_a_request() -> None:
    app = limited(caller_requests=1)
    accepted, refusal = [await get(app, "/v0/agents/a1/logs", kind="websocket") for _ in range(2)]
    assert accepted.headers["ratelimit-remaining"] == "0"
    assert refusal.status == 429
    assert refusal.headers["retry-after"] == "60"
