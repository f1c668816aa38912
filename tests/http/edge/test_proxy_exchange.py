"""Requests carried to an agent's gateway and answers carried back, over real connections."""

import asyncio
import threading

import pytest

from tests.http.edge.support import AGENT, INTERNAL, TOKEN, EdgeServer, Wire, echo, read_request, request, scripted

OK = b"HTTP/1.1 200 OK\r\n"
HELLO = OK + b"Content-Length: 5\r\n\r\nhello"


# What the gateway sees


def test_a_request_is_carried_with_our_credential_and_our_word_for_where_it_came_from(
    edge: EdgeServer, wire: Wire
) -> None:
    edge.serve(echo)
    wire.send(
        request(
            "/p%20q;r//s?token=SECRET&a=%2F&b",
            host=edge.host,
            headers="X-Forwarded-For: 9.9.9.9\r\nX-Request-Id: rq-1\r\nCookie: a=1; gw_token=SECRET\r\nX-Mine: 1\r\n",
        )
    )
    told = wire.json()
    assert told["line"] == "GET /p%20q;r//s?a=%2F&b HTTP/1.1"
    assert sorted(told["headers"]) == sorted(
        [
            ["host", edge.host],
            ["cookie", "a=1"],
            ["x-mine", "1"],
            ["Authorization", INTERNAL],
            ["x-request-id", "rq-1"],
            ["x-forwarded-for", "192.0.0.8"],
            ["x-real-ip", "192.0.0.8"],
            ["x-forwarded-proto", "http"],
            ["x-forwarded-host", edge.host],
        ]
    )


@pytest.mark.parametrize(
    "headers",
    [f"Authorization: bearer {TOKEN}\r\n", f"Cookie: x=1; gw_token={TOKEN}\r\n"],
)
def test_every_way_to_show_the_token_opens_and_none_reaches_the_gateway(
    edge: EdgeServer, wire: Wire, headers: str
) -> None:
    edge.serve(echo)
    wire.send(f"GET /x HTTP/1.1\r\nHost: {edge.host}\r\n{headers}\r\n".encode())
    assert TOKEN not in str(wire.json())
    wire.send(f"GET /x?token={TOKEN} HTTP/1.1\r\nHost: {edge.host}\r\n\r\n".encode())
    assert TOKEN not in str(wire.json())


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"])
def test_methods_and_fixed_bodies(edge: EdgeServer, wire: Wire, method: str) -> None:
    edge.serve(echo)
    wire.send(request("/x", method=method, host=edge.host, headers="Content-Length: 5\r\n") + b"hello")
    told = wire.json()
    assert (told["line"], told["body"]) == (f"{method} /x HTTP/1.1", "hello")


def test_a_chunked_body_in_pieces(edge: EdgeServer, wire: Wire) -> None:
    edge.serve(echo)
    wire.send(request("/x", method="POST", host=edge.host, headers="Transfer-Encoding: chunked\r\n"))
    for piece in (b"3\r\n", b"ab", b"c\r\n5;ext=1\r\ndefgh\r", b"\n0\r\n", b"\r\n"):
        wire.send(piece)
    assert wire.json()["body"] == "abcdefgh"


def test_an_empty_post_keeps_its_length(edge: EdgeServer, wire: Wire) -> None:
    edge.serve(echo)
    wire.send(request("/x", method="POST", host=edge.host, headers="Content-Length: 0\r\n"))
    assert ["content-length", "0"] in wire.json()["headers"]


def test_expect_is_answered_once_the_caller_was_admitted(edge: EdgeServer, wire: Wire) -> None:
    edge.serve(echo)
    expecting = "Expect: 100-continue\r\nContent-Length: 5\r\n"
    wire.send(request("/x", method="POST", host=edge.host, headers=expecting))
    assert wire.reply().status == 100
    wire.send(b"hello")
    told = wire.json()
    assert told["body"] == "hello"
    assert "expect" not in str(told["headers"]).lower()
    wire.send(request("/x", method="POST", host=edge.host, headers=expecting, token="wrong"))
    assert wire.error(401)


# What the client sees


def test_the_answer_is_carried_without_what_is_not_the_clients(edge: EdgeServer, wire: Wire) -> None:
    edge.serve(
        scripted(
            OK + b"Content-Length: 2\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: timeout=5\r\n"
            b"X-Request-Id: forged\r\nSet-Cookie: a=1\r\nSet-Cookie: gw_token=x\r\n"
            b"Set-Cookie: b=2; Domain=agents.localhost\r\nServer: engine\r\n\r\nhi"
        )
    )
    wire.send(request(host=edge.host, headers="X-Request-Id: rq-7\r\n"))
    reply = wire.reply()
    assert reply.headers == [
        ("set-cookie", "a=1"),
        ("server", "engine"),
        ("x-request-id", "rq-7"),
        ("content-length", "2"),
    ]


def test_a_chunked_answer(edge: EdgeServer, wire: Wire) -> None:
    edge.serve(scripted(OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\nT: 1\r\n\r\n", HELLO))
    wire.send(request(host=edge.host))
    reply = wire.reply()
    assert (reply.body, reply["transfer-encoding"]) == (b"hello", "chunked")
    wire.send(request(host=edge.host))
    assert wire.reply().body == b"hello"


def test_an_answer_that_ends_with_the_connection_becomes_chunked(edge: EdgeServer, wire: Wire) -> None:
    edge.serve(scripted(OK + b"\r\nhello", close=True))
    for _ in range(2):
        wire.send(request(host=edge.host))
        assert wire.reply().body == b"hello"
    with edge.connect() as sock:
        old = Wire(sock)
        old.send(f"GET / HTTP/1.0\r\nHost: {edge.host}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode())
        reply = old.reply()
        assert (reply.body, reply["transfer-encoding"], reply["connection"]) == (b"hello", None, "close")


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n",
        OK + b"Content-Length: 0\r\n\r\n",
    ],
)
def test_answers_without_a_body_leave_the_connection_usable(edge: EdgeServer, wire: Wire, answer: bytes) -> None:
    edge.serve(scripted(answer, HELLO))
    wire.send(request(host=edge.host))
    assert wire.reply().status == int(answer.split()[1])
    wire.send(request(host=edge.host))
    assert wire.reply().body == b"hello"
    assert edge.dials == 1


def test_head_has_the_length_and_no_body(edge: EdgeServer, wire: Wire) -> None:
    edge.serve(scripted(OK + b"Content-Length: 99\r\n\r\n"))
    wire.send(request(method="HEAD", host=edge.host))
    assert wire.reply(head=True)["content-length"] == "99"
    edge.serve(scripted(OK + b"Transfer-Encoding: chunked\r\n\r\n"))
    wire.send(request(method="HEAD", host=edge.host))
    assert wire.reply(head=True).status == 200
    edge.serve(scripted(HELLO))
    wire.send(request(host=edge.host))
    assert wire.reply().body == b"hello"
    wire.send(request(method="HEAD", host=edge.host, token="wrong"))
    assert wire.reply(head=True).status == 401
    wire.send(request("/v0/x", host="localhost"))
    assert wire.reply().status == 200


def test_hints_are_carried_and_continue_is_not(edge: EdgeServer, wire: Wire) -> None:
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    edge.serve(scripted(b"HTTP/1.1 100 Continue\r\n\r\n" + hints + hints + HELLO))
    wire.send(request(host=edge.host))
    assert [wire.reply().status for _ in range(3)] == [103, 103, 200]


def test_streamed_answers_arrive_as_they_are_sent(edge: EdgeServer, wire: Wire) -> None:
    more = threading.Event()

    async def gateway(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(OK + b"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n5\r\none\n\n\r\n")
        await asyncio.to_thread(more.wait, 10)
        writer.write(b"5\r\ntwo\n\n\r\n0\r\n\r\n")
        await reader.read()

    edge.serve(gateway)
    wire.send(request(host=edge.host))
    assert wire._until(b"one\n\n\r\n")
    more.set()
    assert wire._until(b"0\r\n\r\n").startswith(b"5\r\ntwo")


# One connection, many requests


def test_a_thousand_requests_over_thirty_two_connections(edge: EdgeServer) -> None:
    edge.serve(echo)
    failures: list[str] = []

    def client(number: int) -> None:
        with edge.connect() as sock:
            wire = Wire(sock)
            for count in range(32):
                api, target = count % 8 == 7, f"/v0/{number}/{count}" if count % 8 == 7 else f"/{number}/{count}"
                wire.send(request(target, host="localhost" if api else edge.host))
                body = wire.reply().body.decode()
                if f"GET {target}" not in body or body.startswith("app ") != api:
                    failures.append(body)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    assert len([record for record in edge.records if record.status == 200]) == 32 * 28
    assert edge.dials <= 64


def test_each_request_is_told_of_once_and_without_its_query(edge: EdgeServer, wire: Wire) -> None:
    edge.serve(echo)
    headers = "Content-Length: 5\r\nX-Request-Id: rq-1\r\n"
    wire.send(request("/x?token=SECRET", method="POST", host=edge.host, headers=headers) + b"hello")
    told = wire.reply()
    wire.send(request("/y", host=edge.host, token="wrong"))
    wire.reply()
    first, second = edge.records
    assert (first.agent_id, first.method, first.path, first.status) == (AGENT, "POST", "/x", 200)
    assert (first.received, first.request_id) == (5, "rq-1")
    assert first.sent > len(told.body)
    assert (second.path, second.status) == ("/y", 401)
    assert "SECRET" not in repr(edge.records)
