"""Who is not let through to a gateway, what is not there, and how a browser signs in."""

import asyncio
import socket

import pytest

from roost.core.problem import TooManyRequests
from roost.warden_client.errors import ContainerNotRunning
from tests.http.edge.support import AGENT, TOKEN, EdgeServer, Wire, echo, request

# Refusals


@pytest.mark.parametrize("token", ["", "wrong", "rst_gw_" + "0" * 64, "x" * 5000])
def test_a_wrong_token_is_401_in_the_contracts_form(edge: EdgeServer, wire: Wire, token: str) -> None:
    edge.serve(echo)
    wire.send(request(host=edge.host, token=token))
    reply = wire.reply()
    assert (reply.status, reply.body) == (401, b'{"error":"Unauthorized"}')
    assert reply["www-authenticate"] == "Bearer"
    assert edge.dials == 0


def test_no_token_is_401(edge: EdgeServer, wire: Wire) -> None:
    wire.send(f"GET / HTTP/1.1\r\nHost: {edge.host}\r\n\r\n".encode())
    assert wire.error(401) == "Missing Authorization header"


def test_another_agents_token_is_401(edge: EdgeServer, wire: Wire) -> None:
    edge.tokens["agent-two"] = "rst_gw_two"
    wire.send(request(host=edge.host, token="rst_gw_two"))
    assert wire.error(401)


def test_an_unknown_host_goes_to_the_application(wire: Wire) -> None:
    wire.send(request("/x", host="evil.example"))
    assert wire.reply().body == b"app GET /x 0"  # `Dispatch` answers 404 there


@pytest.mark.parametrize("path", ["/v0", "/v0/x", "/v0?x=1", "/v0/../x", "/v0/%2e%2e/x", "/v0//x"])
def test_the_platforms_paths_never_reach_the_gateway(edge: EdgeServer, wire: Wire, path: str) -> None:
    edge.serve(echo)
    wire.send(request(path, host=edge.host))
    assert wire.reply().body.startswith(b"app GET")


@pytest.mark.parametrize(
    "path", ["/v0x", "/%76%30/x", "//v0/x", "/./v0/x", "/v0%2fx", "/V0/x", "/v0;x/y", "/v1/../v0/x"]
)
def test_paths_that_resemble_the_platform_reach_the_agent(edge: EdgeServer, wire: Wire, path: str) -> None:
    edge.serve(echo)
    wire.send(request(path, host=edge.host))
    assert wire.json()["line"] == f"GET {path} HTTP/1.1"


def test_an_agent_that_does_not_run_is_503(edge: EdgeServer, wire: Wire) -> None:
    async def gone(_agent_id: str) -> None:
        raise ContainerNotRunning

    edge.dial = gone
    wire.send(request(host=edge.host))
    assert wire.error(503) == "The agent's container is not running"


def test_a_problem_of_the_gate_keeps_its_headers(edge: EdgeServer, wire: Wire) -> None:
    async def limited(_agent_id: str) -> None:
        raise TooManyRequests(retry_after=7)

    edge.dial = limited
    wire.send(request(host=edge.host))
    reply = wire.reply()
    assert (reply.status, reply["retry-after"]) == (429, "7")


def test_a_port_where_nothing_listens_is_502(edge: EdgeServer, wire: Wire) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        edge.upstreams[AGENT] = unused.getsockname()
    wire.send(request(host=edge.host))
    assert wire.error(502)
    edge.serve(echo)
    wire.send(request(host=edge.host))
    assert wire.reply().status == 200


def test_a_gate_that_breaks_is_a_plain_500(edge: EdgeServer, wire: Wire) -> None:
    async def broken(_agent_id: str) -> None:
        raise KeyError("a secret reason")

    edge.dial = broken
    wire.send(request(host=edge.host))
    assert wire.error(500) == "Internal error"


def test_a_connect_that_hangs_is_503(quick: EdgeServer, quick_wire: Wire) -> None:
    async def hang(_agent_id: str) -> None:
        await asyncio.Event().wait()

    quick.dial = hang
    quick_wire.send(request(host=quick.host))
    assert quick_wire.error(503) == "The agent does not answer"


# Signing in


@pytest.mark.parametrize("accept", ["text/html,*/*", "*/*, Text/HTML;q=0.9"])
def test_a_browser_with_a_token_in_the_url_gets_a_cookie_instead(edge: EdgeServer, wire: Wire, accept: str) -> None:
    edge.serve(echo)
    target = f"//evil.example/p?token={TOKEN}&a=1"
    wire.send(f"GET {target} HTTP/1.1\r\nHost: {edge.host}\r\nAccept: {accept}\r\n\r\n".encode())
    reply = wire.reply()
    assert reply.status == 303
    assert reply["location"] == f"http://{AGENT}.agents.localhost:{edge.port}//evil.example/p?a=1"
    cookie = f"gw_token={TOKEN}"
    assert reply["set-cookie"] == f"{cookie}; Path=/; HttpOnly; SameSite=Lax"
    assert reply["cache-control"] == "no-store"
    assert reply["referrer-policy"] == "no-referrer"
    wire.send(f"GET /p HTTP/1.1\r\nHost: {edge.host}\r\nCookie: {cookie}\r\n\r\n".encode())
    assert "GET /p" in wire.json()["line"]


@pytest.mark.parametrize(
    ("line", "headers", "status"),
    [
        (f"GET /?token={TOKEN}", "Accept: application/json\r\n", 200),
        (f"POST /?token={TOKEN}", "Accept: text/html\r\nContent-Length: 0\r\n", 200),
        ("GET /?token=wrong", "Accept: text/html\r\n", 401),
        ("GET /?token=wrong", f"Accept: text/html\r\nAuthorization: Bearer {TOKEN}\r\n", 200),
        ("GET /?a=1", f"Accept: text/html\r\nCookie: gw_token={TOKEN}\r\n", 200),
    ],
)
def test_others_do_not(edge: EdgeServer, wire: Wire, line: str, headers: str, status: int) -> None:
    edge.serve(echo)
    wire.send(f"{line} HTTP/1.1\r\nHost: {edge.host}\r\n{headers}\r\n".encode())
    reply = wire.reply()
    assert (reply.status, reply["set-cookie"]) == (status, None)
