from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.http.edge.forwarded_head import forward_request, strip_cookie, strip_token
from roost.http.server.request_head import InvalidRequestHead, RequestHead, inspect_head

HOST = (b"host", b"a1.agents.localhost:8642")


def sent_on(*headers: tuple[bytes, bytes], target: bytes = b"/", facts: RequestHead | None = None) -> list[str]:
    facts = facts or inspect_head(b"GET", target, "1.1", [HOST, *headers])
    credential = (b"Authorization", b"Bearer internal")
    head = forward_request(facts, client="203.0.113.9", scheme="http", request_id="rq-1", credential=credential)
    lines = head.decode().split("\r\n")
    assert lines[-2:] == ["", ""]
    return lines[:-2]


@pytest.mark.parametrize(
    ("line", "headers", "status"),
    [
        ((b"GET", b"/", "1.1"), [HOST, HOST], 400),
        ((b"GET", b"/", "1.1"), [], 400),
        ((b"POST", b"/", "1.1"), [HOST, (b"transfer-encoding", b"gzip, chunked")], 400),
        ((b"POST", b"/", "1.1"), [HOST, (b"transfer-encoding", b"chunked"), (b"transfer-encoding", b"x")], 400),
        ((b"POST", b"/", "1.0"), [HOST, (b"transfer-encoding", b"chunked")], 400),
        ((b"GET", b"/", "1.1"), [HOST, *[(b"x", b"y")] * 256], 431),
        ((b"GET", b"/", "0.9"), [HOST], 505),
        ((b"GET", b"/", "2.0"), [HOST], 505),
        ((b"CONNECT", b"a:1", "1.1"), [HOST], 405),
        ((b"GET", b"http://b2.agents.localhost/", "1.1"), [HOST], 421),
        ((b"GET", b"*", "1.1"), [HOST], 421),
        ((b"GET", b"/a#b", "1.1"), [HOST], 400),
        ((b"GET", b"/\xc3\xa4", "1.1"), [HOST], 400),
    ],
)
def test_heads_that_are_refused(
    line: tuple[bytes, bytes, str], headers: list[tuple[bytes, bytes]], status: int
) -> None:
    with pytest.raises(InvalidRequestHead) as refused:
        inspect_head(*line, headers)
    assert refused.value.status == HTTPStatus(status)


def test_the_facts_of_a_head() -> None:
    assert inspect_head(b"OPTIONS", b"*", "1.1", [HOST]).headers.length is None
    assert inspect_head(b"GET", b"/", "1.0", []).headers.host == ""
    upload = inspect_head(
        b"POST", b"/", "1.1", [HOST, (b"content-length", b"12"), (b"expect", b"100-Continue")]
    ).headers
    assert (upload.length, upload.has_body, upload.expects) == (12, True, True)
    chunked = inspect_head(b"POST", b"/", "1.1", [HOST, (b"transfer-encoding", b"Chunked")]).headers
    assert (chunked.chunked, chunked.has_body) == (True, True)
    handshake = [HOST, (b"connection", b"Upgrade"), (b"upgrade", b"WebSocket")]
    assert inspect_head(b"GET", b"/", "1.1", handshake).websocket
    assert not inspect_head(b"POST", b"/", "1.1", handshake).websocket
    assert not inspect_head(b"GET", b"/", "1.1", [HOST, (b"upgrade", b"h2c")]).websocket


def test_ours_stand_in_place_of_the_callers() -> None:
    assert sent_on(
        (b"authorization", b"Bearer rst_gw_secret"),
        (b"accept", b"*/*"),
        (b"x-forwarded-for", b"127.0.0.1"),
        (b"x-forwarded-proto", b"https"),
        (b"x-forwarded-host", b"evil"),
        (b"x-forwarded-anything", b"evil"),
        (b"x_forwarded_for", b"127.0.0.1"),
        (b"x-real-ip", b"127.0.0.1"),
        (b"x_real_ip", b"127.0.0.1"),
        (b"forwarded", b"for=127.0.0.1"),
        (b"x-request-id", b"theirs"),
        (b"user_agent", b"kept"),
    ) == [
        "GET / HTTP/1.1",
        "host: a1.agents.localhost:8642",
        "accept: */*",
        "user_agent: kept",
        "x-forwarded-for: 203.0.113.9",
        "x-real-ip: 203.0.113.9",
        "x-forwarded-proto: http",
        "x-forwarded-host: a1.agents.localhost:8642",
        "Authorization: Bearer internal",
        "x-request-id: rq-1",
    ]


def test_repeated_headers_are_rewritten_for_each_program() -> None:
    own = [HOST, (b"authorization", b"Bearer of-the-program"), (b"x-engine", b"theirs")]
    first = inspect_head(b"GET", b"/", "1.1", own)

    def forward(client: str, name: bytes | None, prefix: bytes, *, is_open: bool) -> bytes:
        again = inspect_head(b"GET", b"/", "1.1", list(own), first.headers)
        assert again.headers is first.headers
        credential = None if name is None else (name, b"ours")
        return forward_request(
            again,
            client=client,
            scheme="http",
            request_id="rq",
            credential=credential,
            prefix=prefix,
            is_open=is_open,
        )

    gateway = forward("203.0.113.9", b"Authorization", b"", is_open=False)
    assert b"of-the-program" not in gateway
    assert b"x-engine: theirs" in gateway
    assert b"theirs" not in forward("203.0.113.9", b"X-Engine", b"", is_open=False)
    program = forward("203.0.113.9", None, b"/shop", is_open=True)
    assert b"authorization: Bearer of-the-program\r\n" in program
    assert b"x-forwarded-prefix: /shop\r\n" in program
    assert b"x-forwarded-for: 203.0.113.8\r\n" in forward("203.0.113.8", None, b"/shop", is_open=True)
    assert forward("203.0.113.9", b"Authorization", b"", is_open=False) == gateway


def test_hop_by_hop_headers_stay_behind() -> None:
    lines = sent_on(
        (b"connection", b"close, X-Mine,  Accept"),
        (b"x-mine", b"1"),
        (b"accept", b"1"),
        (b"keep-alive", b"timeout=5"),
        (b"te", b"trailers"),
        (b"trailer", b"x"),
        (b"proxy-authorization", b"x"),
        (b"proxy-connection", b"x"),
        (b"upgrade", b"h2c"),
        (b"http2-settings", b"x"),
        (b"expect", b"100-continue"),
    )
    assert [line for line in lines if not line.startswith(("x-", "Authorization", "host", "GET"))] == []


def test_nominating_our_headers_does_not_take_them_away() -> None:
    lines = sent_on((b"connection", b"authorization, x-forwarded-for, host, content-length"), (b"content-length", b"3"))
    for name in ("Authorization", "x-forwarded-for", "host", "content-length"):
        assert len([line for line in lines if line.startswith(f"{name}:")]) == 1


def test_framing_is_rewritten() -> None:
    assert "content-length: 7" in sent_on((b"content-length", b"0000007"))
    assert "transfer-encoding: chunked" in sent_on((b"transfer-encoding", b"CHUNKED"))
    assert not [line for line in sent_on() if line.startswith(("content-length", "transfer-encoding"))]


def test_a_websocket_handshake_is_asked_for_in_one_form() -> None:
    lines = sent_on((b"connection", b"keep-alive, Upgrade"), (b"upgrade", b"WebSocket"), (b"sec-websocket-key", b"k"))
    assert lines[-2:] == ["connection: Upgrade", "upgrade: websocket"]
    assert "sec-websocket-key: k" in lines


def test_an_engine_with_a_header_of_its_own_sees_only_ours() -> None:
    asked = inspect_head(b"GET", b"/", "1.1", [HOST, (b"x-engine-token", b"x"), (b"authorization", b"y")])
    head = forward_request(
        asked, client="p", scheme="http", request_id="rq", credential=(b"X-Engine-Token", b"internal")
    )
    assert head.lower().count(b"x-engine-token") == 1
    assert b"authorization" not in head.lower()


@pytest.mark.parametrize(
    ("target", "left"),
    [
        (b"/", b"/"),
        (b"/?a=1", b"/?a=1"),
        (b"/?token=x", b"/"),
        (b"/p?token=x&a=1", b"/p?a=1"),
        (b"/p?a=1&token=x&b=%20", b"/p?a=1&b=%20"),
        (b"/p?a=1&token=x&token=y", b"/p?a=1"),
        (b"/p?%74oken=x&a=1", b"/p?a=1"),
        (b"/p?token", b"/p"),
        (b"/p?mytoken=x", b"/p?mytoken=x"),
        (b"/p?TOKEN=x", b"/p?TOKEN=x"),
        (b"/p?a=token", b"/p?a=token"),
        (b"/token=x", b"/token=x"),
        (b"/p?&&a=%zz", b"/p?&&a=%zz"),
    ],
)
def test_the_token_leaves_the_query(target: bytes, left: bytes) -> None:
    assert strip_token(target) == left


@pytest.mark.parametrize(
    ("value", "left"),
    [
        (b"a=1; b=2", b"a=1; b=2"),
        (b"gw_token=x", b""),
        (b"a=1; gw_token=x; b=2", b"a=1; b=2"),
        (b"a=1;gw_token=x", b"a=1"),
        (b" gw_token = x ; a=1", b"a=1"),
        (b"gw_token", b""),
        (b"gw_token=x; gw_token=y", b""),
        (b"gw_token2=x", b"gw_token2=x"),
        (b"a=gw_token", b"a=gw_token"),
    ],
)
def test_our_cookie_leaves_the_jar(value: bytes, left: bytes) -> None:
    assert strip_cookie(value) == left


def test_neither_cookie_nor_token_reach_the_gateway() -> None:
    head = "\n".join(
        sent_on(
            (b"cookie", b"gw_token=SECRET"),
            (b"cookie", b"a=1; gw_token=SECRET"),
            (b"referer", b"http://a1.agents.localhost/?token=SECRET&x=1"),
            target=b"/x?token=SECRET&y=2",
        )
    )
    assert "SECRET" not in head
    assert "GET /x?y=2 HTTP/1.1" in head
    assert "cookie: a=1" in head
    assert "referer: http://a1.agents.localhost/?x=1" in head
    assert head.count("cookie:") == 1


@given(st.lists(st.sampled_from([b"token", b"a", b"%74oken", b"", b"tok%65n"])), st.binary(max_size=5))
def test_no_spelling_of_the_token_is_left(names: list[bytes], value: bytes) -> None:
    value = value.translate(None, b"&?#")
    target = b"/?" + b"&".join(name + b"=S" + value for name in names)
    from urllib.parse import parse_qs

    assert "token" not in parse_qs(strip_token(target).partition(b"?")[2].decode("latin-1"))


def test_headers_are_inspected_again_when_they_or_the_version_change() -> None:
    accept = (b"accept", b"*/*")
    first = inspect_head(b"GET", b"/", "1.1", [HOST, accept])
    assert sent_on(facts=first)[2] == "accept: */*"
    same = inspect_head(b"POST", b"/x", "1.1", [HOST, accept], first.headers)
    assert same.headers is first.headers
    assert sent_on(facts=same)[:3] == ["POST /x HTTP/1.1", "host: a1.agents.localhost:8642", "accept: */*"]
    other = inspect_head(b"GET", b"/", "1.1", [HOST, (b"accept", b"text/html")], first.headers)
    assert sent_on(facts=other)[2] == "accept: text/html"
    assert inspect_head(b"GET", b"/", "1.0", [HOST, accept], first.headers).headers.version == "1.0"


def test_repeated_headers_drop_the_header_of_each_engine() -> None:
    head = inspect_head(b"GET", b"/", "1.1", [HOST, (b"x-one", b"a"), (b"x-two", b"b")])
    for name, kept in ((b"X-One", b"x-two: b"), (b"X-Two", b"x-one: a")):
        sent = forward_request(head, client="p", scheme="http", request_id="rq", credential=(name, b"internal"))
        assert next(line for line in sent.split(b"\r\n") if line.startswith(b"x-") and b"internal" not in line) == kept
