import pytest

from roost.core.problem import TooManyRequests
from roost.http.edge.forwarded_head import forward_response
from roost.http.server.own_response import rejection_bytes, response_bytes
from roost.web import errors
from roost.web.url_rule import ErrorForm

HOST = "a1.agents.localhost"


def carried(*headers: tuple[bytes, bytes], status: int = 200, framing: bytes = b"content-length: 0\r\n") -> list[str]:
    lines = forward_response(status, headers, HOST, framing).decode("latin-1").split("\r\n")
    assert lines[-2:] == ["", ""]
    return lines[:-2]


def test_headers_of_a_response_are_carried() -> None:
    assert carried((b"content-type", b"text/html"), (b"server", b"x"), (b"content-length", b"9"), status=418) == [
        "HTTP/1.1 418 I'm a Teapot",
        "content-type: text/html",
        "server: x",
        "content-length: 0",
    ]
    assert carried(status=599)[0] == "HTTP/1.1 599 "


def test_hop_by_hop_headers_stay_behind() -> None:
    names = (b"connection", b"keep-alive", b"transfer-encoding", b"te", b"trailer", b"upgrade", b"proxy-authenticate")
    assert carried(*((name, b"x-mine") for name in names), (b"x-mine", b"1"), (b"x-request-id", b"forged")) == [
        "HTTP/1.1 200 OK",
        "content-length: 0",
    ]


@pytest.mark.parametrize(
    "cookie",
    [
        b"gw_token=stolen",
        b"gw_token=stolen; Path=/",
        b" gw_token = stolen",
        b"gw_token",
        b"=gw_token=stolen",
        b"= gw_token = stolen; Path=/",
        b"a=1; Domain=agents.localhost",
        b"a=1; domain=.agents.localhost",
        b"a=1; Path=/; DOMAIN = .localhost ; Secure",
        b"a=1; Domain=b2.agents.localhost",
        b"a=1; Domain=a1.agents.localhost; Domain=agents.localhost",
    ],
)
def test_cookies_that_are_ours_or_reach_too_far_are_dropped(cookie: bytes) -> None:
    assert not [line for line in carried((b"set-cookie", cookie)) if "cookie" in line]


@pytest.mark.parametrize(
    "cookie",
    [
        b"a=1",
        b"a=1; Path=/x; HttpOnly",
        b"a=gw_token",
        b"gw_token2=x",
        b"a=1; Domain=a1.agents.localhost",
        b"a=1; Domain=.A1.agents.localhost",
        b"a=1; Domain=",
        b"a=1; Domain",
    ],
)
def test_an_agents_own_cookies_are_carried(cookie: bytes) -> None:
    lines = carried((b"set-cookie", cookie), (b"set-cookie", b"b=2"))
    assert [line for line in lines if "cookie" in line] == [f"set-cookie: {cookie.decode()}", "set-cookie: b=2"]


def test_a_hint_has_no_framing() -> None:
    assert forward_response(103, [(b"link", b"</a>"), (b"connection", b"x")], HOST, b"") == (
        b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"
    )


def test_errors_have_the_contracts_form() -> None:
    answer = rejection_bytes(504, 'a "quoted" reason', "rq-1")
    head, body = answer.split(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 504 Gateway Timeout\r\n")
    assert b"\r\nconnection: close" in head
    assert b"\r\nx-request-id: rq-1" in head
    assert body == b'{"error":"a \\"quoted\\" reason"}'
    assert f"content-length: {len(body)}".encode() in head
    assert b"\r\nx-error-code: gateway_timeout\r\n" in head
    assert b"\r\nx-error-code: own\r\n" in rejection_bytes(400, "x", "rq-1", "own")


def test_an_answer_of_the_table_is_carried_whole() -> None:
    answer = response_bytes(errors.problem_response(ErrorForm.AGENTS, TooManyRequests(retry_after=3)), "rq-1")
    assert answer.startswith(b"HTTP/1.1 429 Too Many Requests\r\n")
    assert b"\r\nretry-after: 3\r\n" in answer
    assert answer.endswith(b'{"error":"Too many requests"}')
