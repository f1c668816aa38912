"""Requests carried to an agent's gateway and answers carried back, over real connections."""

import asyncio
import socket
import threading
import time

import pytest

from roost.core.problem import Limited
from roost.drivers.runtime.contract import BoxGone
from tests.hosts.edge.support import (
    AGENT,
    INTERNAL,
    TOKEN,
    Site,
    Wire,
    echo,
    eventually,
    read_request,
    request,
    scripted,
)

OK = b"HTTP/1.1 200 OK\r\n"
HELLO = OK + b"Content-Length: 5\r\n\r\nhello"


# What the gateway sees


def test_a_request_is_carried_with_our_credential_and_our_word_for_where_it_came_from(site: Site, wire: Wire) -> None:
    site.serve(echo)
    wire.send(
        request(
            "/p%20q;r//s?token=SECRET&a=%2F&b",
            host=site.host,
            headers="X-Forwarded-For: 9.9.9.9\r\nX-Request-Id: rq-1\r\nCookie: a=1; gw_token=SECRET\r\nX-Mine: 1\r\n",
        )
    )
    told = wire.json()
    assert told["line"] == "GET /p%20q;r//s?a=%2F&b HTTP/1.1"
    assert sorted(told["headers"]) == sorted(
        [
            ["host", site.host],
            ["cookie", "a=1"],
            ["x-mine", "1"],
            ["Authorization", INTERNAL],
            ["x-request-id", "rq-1"],
            ["x-forwarded-for", "192.0.0.8"],
            ["x-real-ip", "192.0.0.8"],
            ["x-forwarded-proto", "http"],
            ["x-forwarded-host", site.host],
        ]
    )


@pytest.mark.parametrize(
    "headers",
    [f"Authorization: bearer {TOKEN}\r\n", f"Cookie: x=1; gw_token={TOKEN}\r\n"],
)
def test_every_way_to_show_the_token_opens_and_none_reaches_the_gateway(site: Site, wire: Wire, headers: str) -> None:
    site.serve(echo)
    wire.send(f"GET /x HTTP/1.1\r\nHost: {site.host}\r\n{headers}\r\n".encode())
    assert TOKEN not in str(wire.json())
    wire.send(f"GET /x?token={TOKEN} HTTP/1.1\r\nHost: {site.host}\r\n\r\n".encode())
    assert TOKEN not in str(wire.json())


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"])
def test_methods_and_fixed_bodies(site: Site, wire: Wire, method: str) -> None:
    site.serve(echo)
    wire.send(request("/x", method=method, host=site.host, headers="Content-Length: 5\r\n") + b"hello")
    told = wire.json()
    assert (told["line"], told["body"]) == (f"{method} /x HTTP/1.1", "hello")


def test_a_chunked_body_in_pieces(site: Site, wire: Wire) -> None:
    site.serve(echo)
    wire.send(request("/x", method="POST", host=site.host, headers="Transfer-Encoding: chunked\r\n"))
    for piece in (b"3\r\n", b"ab", b"c\r\n5;ext=1\r\ndefgh\r", b"\n0\r\n", b"\r\n"):
        wire.send(piece)
    assert wire.json()["body"] == "abcdefgh"


def test_an_empty_post_keeps_its_length(site: Site, wire: Wire) -> None:
    site.serve(echo)
    wire.send(request("/x", method="POST", host=site.host, headers="Content-Length: 0\r\n"))
    assert ["content-length", "0"] in wire.json()["headers"]


def test_expect_is_answered_once_the_caller_was_admitted(site: Site, wire: Wire) -> None:
    site.serve(echo)
    expecting = "Expect: 100-continue\r\nContent-Length: 5\r\n"
    wire.send(request("/x", method="POST", host=site.host, headers=expecting))
    assert wire.reply().status == 100
    wire.send(b"hello")
    told = wire.json()
    assert told["body"] == "hello"
    assert "expect" not in str(told["headers"]).lower()
    wire.send(request("/x", method="POST", host=site.host, headers=expecting, token="wrong"))
    assert wire.error(401)


# What the client sees


def test_the_answer_is_carried_without_what_is_not_the_clients(site: Site, wire: Wire) -> None:
    site.serve(
        scripted(
            OK + b"Content-Length: 2\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n"
            b"X-Request-Id: forged\r\nSet-Cookie: a=1\r\nSet-Cookie: gw_token=x\r\n"
            b"Set-Cookie: b=2; Domain=agents.localhost\r\nServer: engine\r\n\r\nhi"
        )
    )
    wire.send(request(host=site.host, headers="X-Request-Id: rq-7\r\n"))
    reply = wire.reply()
    assert reply.headers == [
        ("set-cookie", "a=1"),
        ("server", "engine"),
        ("x-request-id", "rq-7"),
        ("content-length", "2"),
    ]


def test_a_chunked_answer(site: Site, wire: Wire) -> None:
    site.serve(scripted(OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\nT: 1\r\n\r\n", HELLO))
    wire.send(request(host=site.host))
    reply = wire.reply()
    assert (reply.body, reply["transfer-encoding"]) == (b"hello", "chunked")
    wire.send(request(host=site.host))
    assert wire.reply().body == b"hello"


def test_an_answer_that_ends_with_the_connection_becomes_chunked(site: Site, wire: Wire) -> None:
    site.serve(scripted(OK + b"\r\nhello", close=True))
    for _ in range(2):
        wire.send(request(host=site.host))
        assert wire.reply().body == b"hello"
    with site.connect() as sock:
        old = Wire(sock)
        old.send(f"GET / HTTP/1.0\r\nHost: {site.host}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
        reply = old.reply()
        assert (reply.body, reply["transfer-encoding"], reply["connection"]) == (b"hello", None, "close")


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\nETag: x\r\nContent-Length: 99\r\n\r\n",
        OK + b"Content-Length: 0\r\n\r\n",
    ],
)
def test_answers_without_a_body_leave_the_connection_usable(site: Site, wire: Wire, answer: bytes) -> None:
    site.serve(scripted(answer, HELLO))
    wire.send(request(host=site.host))
    assert wire.reply().status == int(answer.split()[1])
    wire.send(request(host=site.host))
    assert wire.reply().body == b"hello"
    assert site.dials == 1


def test_head_has_the_length_and_no_body(site: Site, wire: Wire) -> None:
    site.serve(scripted(OK + b"Content-Length: 99\r\n\r\n", OK + b"Transfer-Encoding: chunked\r\n\r\n", HELLO))
    wire.send(request(method="HEAD", host=site.host))
    assert wire.reply(head=True)["content-length"] == "99"
    wire.send(request(method="HEAD", host=site.host))
    assert wire.reply(head=True).status == 200
    wire.send(request(host=site.host))
    assert wire.reply().body == b"hello"
    assert site.dials == 1
    wire.send(request(method="HEAD", host=site.host, token="wrong"))
    assert wire.reply(head=True).status == 401
    wire.send(request("/v0/x", host="localhost"))
    assert wire.reply().status == 200


def test_hints_are_carried_and_continue_is_not(site: Site, wire: Wire) -> None:
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    site.serve(scripted(b"HTTP/1.1 100 Continue\r\n\r\n" + hints + hints + HELLO))
    wire.send(request(host=site.host))
    assert [wire.reply().status for _ in range(3)] == [103, 103, 200]


def test_streamed_answers_arrive_as_they_are_sent(site: Site, wire: Wire) -> None:
    more = threading.Event()

    async def gateway(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(OK + b"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n5\r\none\n\n\r\n")
        await asyncio.to_thread(more.wait, 10)
        writer.write(b"5\r\ntwo\n\n\r\n0\r\n\r\n")
        await reader.read()

    site.serve(gateway)
    wire.send(request(host=site.host))
    assert wire._until(b"one\n\n\r\n")
    more.set()
    assert wire._until(b"0\r\n\r\n").startswith(b"5\r\ntwo")


# One connection, many requests


def test_a_thousand_requests_over_thirty_two_connections(site: Site) -> None:
    site.serve(echo)
    failures: list[str] = []

    def client(number: int) -> None:
        with site.connect() as sock:
            wire = Wire(sock)
            for count in range(32):
                api, target = count % 8 == 7, f"/v0/{number}/{count}" if count % 8 == 7 else f"/{number}/{count}"
                wire.send(request(target, host="localhost" if api else site.host))
                body = wire.reply().body.decode()
                if f"GET {target}" not in body or body.startswith("app ") != api:
                    failures.append(body)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    assert len([passage for passage in site.passages if passage.status == 200]) == 32 * 28
    assert site.dials <= 64


def test_each_request_is_told_of_once_and_without_its_query(site: Site, wire: Wire) -> None:
    site.serve(echo)
    headers = "Content-Length: 5\r\nX-Request-Id: rq-1\r\n"
    wire.send(request("/x?token=SECRET", method="POST", host=site.host, headers=headers) + b"hello")
    told = wire.reply()
    wire.send(request("/y", host=site.host, token="wrong"))
    wire.reply()
    first, second = site.passages
    assert (first.agent_id, first.method, first.path, first.status) == (AGENT, "POST", "/x", 200)
    assert (first.received, first.request_id) == (5, "rq-1")
    assert first.sent > len(told.body)
    assert (second.path, second.status) == ("/y", 401)
    assert "SECRET" not in repr(site.passages)


# Refusals


@pytest.mark.parametrize("token", ["", "wrong", "rst_gw_" + "0" * 64, "x" * 5000])
def test_a_wrong_token_is_401_in_the_contracts_form(site: Site, wire: Wire, token: str) -> None:
    site.serve(echo)
    wire.send(request(host=site.host, token=token))
    reply = wire.reply()
    assert (reply.status, reply.body) == (401, b'{"error":"Unauthorized"}')
    assert reply["www-authenticate"] == "Bearer"
    assert site.dials == 0


def test_no_token_is_401(site: Site, wire: Wire) -> None:
    wire.send(f"GET / HTTP/1.1\r\nHost: {site.host}\r\n\r\n".encode())
    assert wire.error(401) == "Missing Authorization header"


def test_another_agents_token_is_401(site: Site, wire: Wire) -> None:
    site.tokens["agent-two"] = "rst_gw_two"
    wire.send(request(host=site.host, token="rst_gw_two"))
    assert wire.error(401)


def test_an_unknown_host_goes_to_the_application(wire: Wire) -> None:
    wire.send(request("/x", host="evil.example"))
    assert wire.reply().body == b"app GET /x 0"  # `Dispatch` answers 404 there


@pytest.mark.parametrize("path", ["/v0", "/v0/x", "/v0?x=1", "/v0/../x", "/v0/%2e%2e/x", "/v0//x"])
def test_the_platforms_paths_never_reach_the_gateway(site: Site, wire: Wire, path: str) -> None:
    site.serve(echo)
    wire.send(request(path, host=site.host))
    assert wire.reply().body.startswith(b"app GET")


@pytest.mark.parametrize(
    "path", ["/v0x", "/%76%30/x", "//v0/x", "/./v0/x", "/v0%2fx", "/V0/x", "/v0;x/y", "/v1/../v0/x"]
)
def test_what_only_looks_like_the_platform_is_the_agents(site: Site, wire: Wire, path: str) -> None:
    site.serve(echo)
    wire.send(request(path, host=site.host))
    assert wire.json()["line"] == f"GET {path} HTTP/1.1"


def test_an_agent_that_does_not_run_is_503(site: Site, wire: Wire) -> None:
    async def gone(_agent_id: str) -> None:
        raise BoxGone

    site.dial = gone
    wire.send(request(host=site.host))
    assert wire.error(503) == "The agent's container is not running"


def test_a_problem_of_the_gate_keeps_its_headers(site: Site, wire: Wire) -> None:
    async def limited(_agent_id: str) -> None:
        raise Limited(retry_after=7)

    site.dial = limited
    wire.send(request(host=site.host))
    reply = wire.reply()
    assert (reply.status, reply["retry-after"]) == (429, "7")


def test_a_port_where_nothing_listens_is_502(site: Site, wire: Wire) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        site.upstreams[AGENT] = unused.getsockname()
    wire.send(request(host=site.host))
    assert wire.error(502)
    site.serve(echo)
    wire.send(request(host=site.host))
    assert wire.reply().status == 200


def test_a_gate_that_breaks_is_a_plain_500(site: Site, wire: Wire) -> None:
    async def broken(_agent_id: str) -> None:
        raise KeyError("a secret reason")

    site.dial = broken
    wire.send(request(host=site.host))
    assert wire.error(500) == "Internal error"


def test_a_connect_that_hangs_is_503(quick: Site, quick_wire: Wire) -> None:
    async def hang(_agent_id: str) -> None:
        await asyncio.Event().wait()

    quick.dial = hang
    quick_wire.send(request(host=quick.host))
    assert quick_wire.error(503) == "The agent does not answer"


# Signing in


def test_a_browser_with_a_token_in_the_url_gets_a_cookie_instead(site: Site, wire: Wire) -> None:
    site.serve(echo)
    target = f"//evil.example/p?token={TOKEN}&a=1"
    wire.send(f"GET {target} HTTP/1.1\r\nHost: {site.host}\r\nAccept: text/html,*/*\r\n\r\n".encode())
    reply = wire.reply()
    assert reply.status == 303
    assert reply["location"] == f"http://{AGENT}.agents.localhost:{site.port}//evil.example/p?a=1"
    assert reply["set-cookie"] == f"gw_token={TOKEN}; Path=/; HttpOnly; SameSite=Lax"
    assert reply["cache-control"] == "no-store"
    assert reply["referrer-policy"] == "no-referrer"
    wire.send(
        f"GET /p HTTP/1.1\r\nHost: {site.host}\r\nCookie: {reply['set-cookie'].partition(';')[0]}\r\n\r\n".encode()
    )
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
def test_others_do_not(site: Site, wire: Wire, line: str, headers: str, status: int) -> None:
    site.serve(echo)
    wire.send(f"{line} HTTP/1.1\r\nHost: {site.host}\r\n{headers}\r\n".encode())
    reply = wire.reply()
    assert (reply.status, reply["set-cookie"]) == (status, None)


# Gateways with bad manners


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        OK + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        OK + b"X: " + b"y" * 10_000_000 + b"\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
        b"HTTP/1.1 999 Odd\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n",
        b"HTTP/1.1 102 Processing\r\n\r\n" * 50,
    ],
)
def test_an_answer_that_cannot_be_carried_is_502(site: Site, wire: Wire, answer: bytes) -> None:
    site.serve(scripted(answer))
    wire.send(request(host=site.host))
    statuses = [wire.reply().status]
    while statuses[-1] < 200:
        statuses.append(wire.reply().status)
    assert statuses[-1] == 502
    wire.send(request("/v0/x", host="localhost"))
    assert wire.reply().body == b"app GET /v0/x 0"


@pytest.mark.parametrize("cut", [b"", OK, OK + b"Content-Len"])
def test_a_gateway_that_dies_before_it_answers_is_502(site: Site, wire: Wire, cut: bytes) -> None:
    site.serve(scripted(cut, close=True))
    wire.send(request(method="POST", host=site.host, headers="Content-Length: 1\r\n") + b"x")
    assert wire.error(502)


@pytest.mark.parametrize(
    "cut", [OK + b"Content-Length: 99\r\n\r\nhello", OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"]
)
def test_a_gateway_that_dies_in_an_answer_ends_the_clients_connection(site: Site, wire: Wire, cut: bytes) -> None:
    site.serve(scripted(cut, close=True))
    wire.send(request(host=site.host))
    data = wire.rest()
    assert data.startswith(OK)
    assert b"hello" in data
    assert not data.endswith(b"0\r\n\r\n")


def test_an_answer_nobody_asked_for_is_never_told(site: Site, wire: Wire) -> None:
    forged = OK + b"Content-Length: 6\r\n\r\nforged"
    site.serve(scripted(HELLO + forged))
    for _ in range(3):
        wire.send(request(host=site.host))
        assert wire.reply().body == b"hello"
        wire.send(request("/v0/x", host="localhost"))
        assert wire.reply().body == b"app GET /v0/x 0"
    assert site.dials == 3


def test_a_gateway_that_never_answers_is_504(quick: Site, quick_wire: Wire) -> None:
    quick.serve(scripted(b""))
    quick_wire.send(request(host=quick.host))
    assert quick_wire.error(504) == "The agent took too long to answer"
    quick_wire.send(request("/v0/x", host="localhost"))
    assert quick_wire.reply().status == 200


def test_an_answer_that_stops_is_cut_in_the_end(quick: Site, quick_wire: Wire) -> None:
    quick.serve(scripted(OK + b"Content-Length: 99\r\n\r\nhello"))
    quick_wire.send(request(host=quick.host))
    assert quick_wire.rest().endswith(b"hello")


# Clients with bad manners


def test_an_upload_that_stops_is_408(quick: Site, quick_wire: Wire) -> None:
    quick.serve(echo)
    quick_wire.send(request(method="POST", host=quick.host, headers="Content-Length: 99\r\n") + b"x")
    assert quick_wire.error(408)


def test_an_upload_that_drips_is_408(quick: Site, quick_wire: Wire) -> None:
    quick.serve(echo)
    quick_wire.send(request(method="POST", host=quick.host, headers="Content-Length: 9999\r\n"))
    quick_wire.sock.settimeout(0.02)
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            quick_wire.send(b"x")
            quick_wire.buffer += quick_wire.sock.recv(1000)
            break
        except TimeoutError:
            continue
    quick_wire.sock.settimeout(5)
    assert quick_wire.error(408)


def test_a_client_that_leaves_ends_the_request_at_the_gateway(site: Site) -> None:
    ended = threading.Event()

    async def gateway(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        await reader.read()
        ended.set()

    site.serve(gateway)
    sock = site.connect()
    sock.sendall(request(host=site.host))
    eventually(lambda: site.dials)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    sock.close()
    assert ended.wait(10)
    eventually(lambda: [passage.status for passage in site.passages] == [499])


def test_a_client_that_ends_its_side_still_gets_its_answer(site: Site, wire: Wire) -> None:
    may = threading.Event()

    async def gateway(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        await asyncio.to_thread(may.wait, 10)
        writer.write(HELLO)
        await reader.read()

    site.serve(gateway)
    wire.send(request(host=site.host))
    wire.sock.shutdown(socket.SHUT_WR)
    eventually(lambda: site.dials)
    may.set()
    assert wire.reply().body == b"hello"
    assert wire.closed()


def test_a_client_that_ends_its_side_in_the_middle_of_a_request_has_gone(site: Site, wire: Wire) -> None:
    site.serve(echo)
    wire.send(request(method="POST", host=site.host, headers="Content-Length: 9\r\n") + b"x")
    eventually(lambda: site.dials)
    wire.sock.shutdown(socket.SHUT_WR)
    assert wire.closed()


def test_an_answer_before_the_upload_is_through(site: Site, wire: Wire) -> None:
    async def gateway(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
        await reader.read(10)

    site.serve(gateway)
    wire.send(request("/x", method="POST", host=site.host, headers="Content-Length: 3000000\r\n") + b"x" * 1000)
    reply = wire.reply()
    assert (reply.status, reply.body) == (413, b"no")
    wire.send(b"x" * 2_999_000 + request("/v0/x", host="localhost"))
    assert wire.reply().body == b"app GET /v0/x 0"


def test_an_answer_that_is_written_while_the_upload_goes_on(site: Site, wire: Wire) -> None:
    async def gateway(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK + b"Transfer-Encoding: chunked\r\n\r\n")
        while data := await reader.readexactly(7):
            writer.write(b"7\r\n" + data + b"\r\n")
            if b"end" in data:
                writer.write(b"0\r\n\r\n")
                break
        await reader.read()

    site.serve(gateway)
    wire.send(request("/x", method="POST", host=site.host, headers="Content-Length: 14\r\n"))
    wire.send(b"message")
    assert wire._until(b"message\r\n")
    wire.send(b"the end")
    assert wire._until(b"0\r\n\r\n").startswith(b"7\r\nthe end")
    wire.send(request("/v0/x", host="localhost"))
    assert wire.reply().status == 200
