"""Requests for programs of an agent: paths, credentials, and routes that change meanwhile."""

import asyncio
import base64
from collections.abc import Iterator
from typing import Any

import pytest

from roost.agents.network.routes.model import PathRoute
from tests.http.edge.support import AGENT, TOKEN, EdgeServer, Wire, echo, read_request, scripted

OPEN, CLOSED = PathRoute("/open", 3000, is_protected=False), PathRoute("/closed", 4000)
PART = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n"


@pytest.fixture
def routed(edge: EdgeServer) -> Iterator[EdgeServer]:
    for name in (AGENT, f"{AGENT}:3000", f"{AGENT}:4000"):
        edge.serve(echo, name)
    edge.set_routes(OPEN, CLOSED)
    yield edge
    edge.set_routes()
    for port in (3000, 4000):
        edge.upstreams.pop(f"{AGENT}:{port}", None)


@pytest.fixture
def wire(routed: EdgeServer) -> Iterator[Wire]:
    with routed.connect() as sock:
        yield Wire(sock)


def send(wire: Wire, edge: EdgeServer, target: str, *lines: str) -> None:
    wire.send("\r\n".join((f"GET {target} HTTP/1.1", f"Host: {edge.host}", *lines, "", "")).encode())


def ask(wire: Wire, edge: EdgeServer, target: str, *lines: str) -> tuple[str, dict[str, str]]:
    """Return the target that the program got, and its headers."""
    send(wire, edge, target, *lines)
    got: Any = wire.json()
    return got["line"].split()[1], dict(got["headers"])


def test_a_prefix_is_stripped_and_named(routed: EdgeServer, wire: Wire) -> None:
    for target, expected in (("/open", "/"), ("/open?a=1", "/?a=1"), ("/open/", "/"), ("/open/a%20b", "/a%20b")):
        path, headers = ask(wire, routed, target)
        assert path == expected
        assert headers["x-forwarded-prefix"] == "/open"
        assert "authorization" not in headers


def test_all_other_paths_are_the_gateways(routed: EdgeServer, wire: Wire) -> None:
    send(wire, routed, "/opening")
    assert wire.reply().status == 401
    path, headers = ask(wire, routed, "/opening", f"Authorization: Bearer {TOKEN}")
    assert path == "/opening"
    assert "x-forwarded-prefix" not in headers


def test_a_protected_route_needs_the_token_and_hides_it(routed: EdgeServer, wire: Wire) -> None:
    for lines in ((), ("Authorization: Bearer other",)):
        send(wire, routed, "/closed", *lines)
        assert wire.reply().status == 401
    for target, line in (
        ("/closed/x", f"Authorization: Bearer {TOKEN}"),
        (f"/closed/x?token={TOKEN}", "Accept: */*"),
        ("/closed/x", f"Cookie: a=b; gw_token={TOKEN}"),
    ):
        path, headers = ask(wire, routed, target, line)
        assert path == "/x"
        assert TOKEN not in str(headers)


def test_an_open_route_gets_all_but_gateway_tokens(routed: EdgeServer, wire: Wire) -> None:
    basic = base64.b64encode(f"x:{TOKEN}".encode()).decode()
    cookie = f"Cookie: gw_token={TOKEN}; own=1"
    for secret in (f"Bearer {TOKEN}", f"Basic {basic}", f"Basic {basic.rstrip('=')}"):
        path, headers = ask(wire, routed, f"/open/?token={TOKEN}&b=2", f"Authorization: {secret}", cookie)
        assert path == "/?b=2"
        assert "authorization" not in headers
        assert headers["cookie"] == "own=1"
    path, headers = ask(wire, routed, "/open/?token=own", "Authorization: Bearer own", "Connection: authorization")
    assert (path, "authorization" in headers) == ("/?token=own", False)  # declared to be for one hop only
    assert ask(wire, routed, "/open/", "Authorization: Basic !", "Accept: text/html")[1]["authorization"] == "Basic !"
    send(wire, routed, f"/open/?token={TOKEN}", "Accept: text/html")
    assert wire.reply().status == 200  # no cookie for a token that was not checked


@pytest.mark.parametrize(
    "path", ["/open/../closed", "/open/%2e%2e/closed", "/x/..;/open", "/%6fpen", "//open", "/open%2f..%2fclosed"]
)
def test_a_path_that_a_program_could_read_as_another_routes(routed: EdgeServer, wire: Wire, path: str) -> None:
    send(wire, routed, path, f"Authorization: Bearer {TOKEN}")
    assert wire.error(400) == "Ambiguous path"


def test_route_without_a_listener_is_a_bad_gateway(routed: EdgeServer, wire: Wire) -> None:
    del routed.upstreams[f"{AGENT}:3000"]
    send(wire, routed, "/open")
    assert "Nothing answers on port 3000" in wire.error(502)
    send(wire, routed, "/open", "Accept: text/html")
    page = wire.reply()
    assert (page.status, page["content-type"]) == (502, "text/html; charset=utf-8")
    assert b"<p>Nothing answers on port 3000" in page.body


def test_a_changed_route_ends_its_own_requests_only(routed: EdgeServer) -> None:
    for port in (3000, 4000):
        routed.serve(scripted(PART), f"{AGENT}:{port}")
    with routed.connect() as first, routed.connect() as second:
        one, two = Wire(first), Wire(second)
        for wire, path in ((one, "/open"), (two, "/closed")):
            send(wire, routed, path, f"Authorization: Bearer {TOKEN}")
            while b"hi" not in wire.buffer:
                wire.buffer += wire.sock.recv(1 << 16)
        routed.set_routes(CLOSED)
        assert b"0\r\n\r\n" not in one.rest()
        send(two, routed, "/open")
        two.sock.settimeout(0.2)
        with pytest.raises(TimeoutError):  # still the answer of the other route, which is incomplete
            two.sock.recv(1)
        routed.set_routes(CLOSED, OPEN)
    routed.serve(echo, f"{AGENT}:3000")
    with routed.connect() as sock:
        assert ask(Wire(sock), routed, "/open")[0] == "/"


def test_requests_of_several_routes_share_the_connections_of_a_port(routed: EdgeServer, wire: Wire) -> None:
    routed.set_routes(OPEN, PathRoute("/too", 3000, is_protected=False))
    dials = routed.dials
    for path in ("/open", "/too", "/open"):
        ask(wire, routed, path)
    assert routed.dials == dials + 1


async def _silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await read_request(reader)
    await reader.read()
    writer.close()


def test_a_rotation_ends_requests_of_routes(routed: EdgeServer) -> None:
    routed.serve(_silent, f"{AGENT}:4000")
    with routed.connect() as sock:
        send(Wire(sock), routed, "/closed", f"Authorization: Bearer {TOKEN}")
        sock.settimeout(0.1)
        with pytest.raises(TimeoutError):
            sock.recv(1)
        sock.settimeout(10)
        routed.rotate()
        assert Wire(sock).closed()
