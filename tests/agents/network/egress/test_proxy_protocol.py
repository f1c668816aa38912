import asyncio
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.agents.network.egress import proxy_protocol
from roost.agents.network.egress.proxy_protocol import HeadTooLarge, HeadTooSlow
from roost.net.errors import InvalidTarget
from roost.net.host_port import HostPort

END = b"\r\n\r\n"


def lines(onward: bytes) -> list[bytes]:
    assert onward.endswith(END)
    return onward.removesuffix(END).split(b"\r\n")


def test_connect_request_names_its_target() -> None:
    request = proxy_protocol.parse_head(
        b"CONNECT Example.com:443 HTTP/1.1\r\nHost: other.example\r\nProxy-Connection: x" + END
    )
    assert request.tunnel
    assert request.target == HostPort("example.com", 443)


def test_the_onward_head_is_rewritten() -> None:
    request = proxy_protocol.parse_head(
        b"GET HTTP://Example.com/a?b=c HTTP/1.1\r\nhost: other.example\r\nAccept: */*\r\nX-Mine: 1\r\nX-Empty:\r\n"
        b"Connection: keep-alive, X-Mine\r\nKeep-Alive: 5\r\nProxy-Connection: keep-alive\r\n"
        b"Proxy-Authorization: Basic c2VjcmV0\r\nTE: trailers\r\nUpgrade: h2c\r\nCookie: a=\xc3\xa9" + END
    )
    assert not request.tunnel
    assert request.target == HostPort("example.com", 80)
    assert lines(request.onward) == [
        b"GET /a?b=c HTTP/1.1",
        b"Host: Example.com",
        b"Accept: */*",
        b"X-Empty: ",
        b"Cookie: a=\xc3\xa9",
        b"Connection: close",
    ]


@pytest.mark.parametrize(
    ("url", "first", "host"),
    [
        (b"http://a.example", b"GET / HTTP/1.1", b"Host: a.example"),
        (b"http://a.example?x=1", b"GET /?x=1 HTTP/1.1", b"Host: a.example"),
        (b"http://a.example:8080/x", b"GET /x HTTP/1.1", b"Host: a.example:8080"),
        (b"http://[2606:4700::1]:81/", b"GET / HTTP/1.1", b"Host: [2606:4700::1]:81"),
        (b"http://a.example/http://b.example/@", b"GET /http://b.example/@ HTTP/1.1", b"Host: a.example"),
    ],
)
def test_the_forms_of_a_url(url: bytes, first: bytes, host: bytes) -> None:
    assert lines(proxy_protocol.parse_head(b"GET %b HTTP/1.1" % url + END).onward)[:2] == [first, host]


@pytest.mark.parametrize(
    ("field", "length", "framing"),
    [
        (b"Content-Length: 12", 12, b"Content-Length: 12"),
        (b"Content-Length: 0", 0, b"Content-Length: 0"),
        (b"Content-Length: 007", 7, b"Content-Length: 7"),
        (b"Transfer-Encoding: Chunked", None, b"Transfer-Encoding: chunked"),
    ],
)
def test_framing_of_a_body_is_kept(field: bytes, length: int | None, framing: bytes) -> None:
    request = proxy_protocol.parse_head(b"POST http://a.example/ HTTP/1.1\r\n" + field + END)
    assert request.length == length
    assert lines(request.onward)[2:] == [framing, b"Connection: close"]


POST = b"POST http://a.example/ HTTP/1.1\r\n"
GET = b"GET http://a.example/ HTTP/1.1\r\n"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"GET",
        b"GET / HTTP/1.1",
        b"GET * HTTP/1.1",
        b"GET  http://a.example/ HTTP/1.1",
        b" GET http://a.example/ HTTP/1.1",
        b"GET http://a.example/ HTTP/1.1 ",
        b"GET http://a.example/ HTTP/2.0",
        b"GET http://a.example/ HTTP/0.9",
        b"GET http://a.example/",
        b"GET http://a.example/ x HTTP/1.1",
        b"GET http://a.example/\x00 HTTP/1.1",
        b"GET http://a.example/#x HTTP/1.1",
        b"GET http:///x HTTP/1.1",
        b"GET http://user:pw@a.example/ HTTP/1.1",
        b"GET http://a.example@127.0.0.1/ HTTP/1.1",
        b"GET http://a.example\\@b.example/ HTTP/1.1",
        b"GET https://a.example/ HTTP/1.1",
        b"GET ftp://a.example/ HTTP/1.1",
        b"G(T http://a.example/ HTTP/1.1",
        b"CONNECT a.example HTTP/1.1",
        b"CONNECT http://a.example:443 HTTP/1.1",
        b"CONNECT a.example:443/x HTTP/1.1",
        b"CONNECT \xe4.example:443 HTTP/1.1",
        b"CONNECT a.example:443 HTTP/1.1\r\nContent-Length: 5",
        b"CONNECT a.example:443 HTTP/1.1\r\nTransfer-Encoding: chunked",
        # ambiguous length of the body
        POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked",
        POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5",
        POST + b"Content-Length: 5\r\nContent-Length: 6",
        POST + b"Content-Length: 5\r\nContent-Length: 5",
        POST + b"Content-Length: 5, 5",
        POST + b"Content-Length: +5",
        POST + b"Content-Length: -5",
        POST + b"Content-Length: 0x5",
        POST + b"Content-Length: 5 5",
        POST + b"Content-Length:",
        POST + b"Content-Length: 9999999999999999999",
        POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        POST + b"Transfer-Encoding: chunked, identity",
        POST + b"Transfer-Encoding: gzip, chunked",
        POST + b"Transfer-Encoding: xchunked",
        POST + b"Transfer-Encoding: \x0bchunked",
        POST + b"Transfer-Encoding:",
        b"POST http://a.example/ HTTP/1.0\r\nTransfer-Encoding: chunked",
        # lines that other servers parse differently
        GET + b"Host: a.example\r\nHost: b.example",
        GET + b"X: 1\r\n folded",
        GET + b"X: 1\r\n\tfolded",
        GET + b" X: 1",
        GET + b"X : 1",
        GET + b": 1",
        GET + b"X",
        GET + b"X\x00: 1",
        GET + b"X: 1\x00",
        GET + b"X: 1\nY: 2",
        GET + b"X: 1\rY: 2",
        b"GET http://a.example/ HTTP/1.1\nX: 1",
    ],
)
def test_ambiguous_heads_are_refused(text: bytes) -> None:
    with pytest.raises(InvalidTarget):
        proxy_protocol.parse_head(text + END)


@given(
    st.lists(
        st.one_of(
            st.binary(max_size=20),
            st.sampled_from(
                [b"\r\n", b"\n", b" ", b": ", GET, POST, b"Content-Length: 5", b"Transfer-Encoding: chunked"]
            ),
        ),
        max_size=8,
    ).map(b"".join)
)
def test_nothing_that_is_accepted_carries_a_second_message(text: bytes) -> None:
    try:
        request = proxy_protocol.parse_head(text + END)
    except InvalidTarget:
        return
    assert request.onward.count(END) == (not request.tunnel)
    assert not re.search(rb"\r(?!\n)|(?<!\r)\n|\x00", request.onward)
    framing = re.findall(rb"(?mi)^(?:content-length|transfer-encoding):", request.onward)
    assert len(framing) <= 1


async def read_fed_head(data: bytes, *, end: bool = False, limit: int = 1 << 16) -> bytes:
    reader = asyncio.StreamReader(limit=limit)
    reader.feed_data(data)
    if end:
        reader.feed_eof()
    return await proxy_protocol.read_head(reader, 0.05)


async def test_reading_stops_at_the_empty_line() -> None:
    assert await read_fed_head(b"A\r\nB\r\n\r\nbody") == b"A\r\nB\r\n\r\n"


async def test_a_head_has_a_size_a_deadline_and_an_end() -> None:
    assert len(await read_fed_head(b"x" * (proxy_protocol.MAX_HEAD - 4) + END)) == proxy_protocol.MAX_HEAD
    for data in (b"x" * (proxy_protocol.MAX_HEAD - 3) + END, b"x" * (1 << 17)):
        with pytest.raises(HeadTooLarge):
            await read_fed_head(data)
    with pytest.raises(HeadTooSlow):
        await read_fed_head(b"GET http://a.example/ HTTP/1.1\n\n")
    with pytest.raises(EOFError):
        await read_fed_head(b"GET", end=True)
