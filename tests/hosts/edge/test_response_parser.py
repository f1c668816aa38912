import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.hosts.edge.request_head import Headers
from roost.hosts.edge.response_parser import InvalidResponse, ResponseParser


class Sink:
    """Keeps what it is told."""

    def __init__(self, *, upgrades: bool = False) -> None:
        self.upgrades = upgrades
        self.hints: list[int] = []
        self.status = 0
        self.length: int | None = None
        self.has_body: bool | None = None
        self.data = b""

    def informational(self, status: int, headers: Headers) -> None:
        self.hints.append(status)

    def switch(self, headers: Headers) -> None:
        if not self.upgrades:
            raise InvalidResponse
        self.status = 101

    def begin_response(self, status: int, headers: Headers, length: int | None, *, has_body: bool) -> None:
        assert self.status == 0, "answered twice"
        self.status, self.length, self.has_body = status, length, has_body

    def body(self, data: bytes) -> None:
        assert self.status
        self.data += data


def read(data: bytes, *, bodiless: bool = False, step: int | None = None) -> tuple[ResponseParser, Sink]:
    answers, sink = ResponseParser(1024), Sink()
    answers.expect_response(sink, bodiless=bodiless)
    for start in range(0, len(data), step or len(data)):
        answers.feed(data[start : start + (step or len(data))])
    return answers, sink


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize("step", [None, 1, 3])
@pytest.mark.parametrize(
    ("data", "status", "body", "reusable"),
    [
        (OK + b"Content-Length: 5\r\n\r\nhello", 200, b"hello", True),
        (OK + b"Content-Length: 0\r\n\r\n", 200, b"", True),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nT: 1\r\n\r\n", 200, b"hello", True),
        (OK + b"Connection: close\r\nContent-Length: 2\r\n\r\nhi", 200, b"hi", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", 200, b"hi", False),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b"", True),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n", 304, b"", True),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 1\r\n\r\nx", 200, b"x", True),
        (b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + OK + b"Content-Length: 1\r\n\r\nx", 200, b"x", True),
    ],
)
def test_whole_answers(data: bytes, status: int, body: bytes, reusable: bool, step: int | None) -> None:
    answers, sink = read(data, step=step)
    assert (sink.status, sink.data, answers.done, answers.reusable) == (status, body, True, reusable)
    assert not answers.until_close


def test_an_answer_without_a_length_ends_with_the_connection() -> None:
    answers, sink = read(OK + b"\r\nsome")
    assert (sink.data, sink.has_body, answers.done, answers.until_close) == (b"some", True, False, True)


@pytest.mark.parametrize("framing", [b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n"])
def test_an_answer_to_head_has_no_body_and_the_next_one_is_read(framing: bytes) -> None:
    answers, sink = read(OK + framing + b"\r\n", bodiless=True)
    assert (answers.done, answers.reusable, sink.has_body) == (True, True, False)
    again = Sink()
    answers.expect_response(again, bodiless=False)
    answers.feed(OK + b"Content-Length: 2\r\n\r\nhi")
    assert (again.data, answers.done) == (b"hi", True)


@pytest.mark.parametrize("extra", [b"x", b"\r\n\r\nx", OK + b"Content-Length: 0\r\n\r\n", b"HTTP/1.1 200 OK\r\n"])
@pytest.mark.parametrize("bodiless", [False, True])
def test_what_follows_an_answer_is_never_told_and_spoils_the_connection(extra: bytes, bodiless: bool) -> None:
    body = b"" if bodiless else b"hi"
    answers, sink = read(OK + b"Content-Length: 2\r\n\r\n" + body + extra, bodiless=bodiless)
    assert (sink.data, answers.done, answers.reusable) == (body, True, False)


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        b"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\n\r\n",
        b"HTTP/1.1 103 Hints\r\nContent-Length: 3\r\n\r\n",
        b"HTTP/1.1 103 Hints\r\n\r\n" * 17,
        OK + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
        OK + b"Content-Length: -1\r\n\r\n",
        OK + b"Transfer-Encoding: gzip\r\n\r\n",
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        OK + b"Bad Name: x\r\n\r\n",
        OK + b"X: a\r\n folded\r\n\r\n",
        OK + b"X: a\x00b\r\n\r\n",
        OK + b"X: " + b"y" * 2000 + b"\r\n\r\n",
        OK + b"".join(b"X%d: y\r\n" % number for number in range(300)) + b"\r\n",
    ],
)
def test_answers_that_cannot_be_carried(data: bytes) -> None:
    with pytest.raises(InvalidResponse):
        read(data)


def test_a_head_that_never_ends_is_bounded() -> None:
    answers = ResponseParser(1024)
    answers.expect_response(Sink(), bodiless=False)
    answers.feed(b"HTTP/1.1 200 OK\r\nX: ")
    for _ in range(1000):
        answers.feed(b"y")
    with pytest.raises(InvalidResponse):
        answers.feed(b"y" * 100)


def test_a_switch_that_was_asked_for_leaves_the_rest() -> None:
    answers, sink = ResponseParser(1024), Sink(upgrades=True)
    answers.expect_response(sink, bodiless=False)
    rest = answers.feed(b"HTTP/1.1 101 SP\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x02hi")
    assert (sink.status, rest) == (101, b"\x81\x02hi")


def test_trailers_are_not_taken_for_headers() -> None:
    seen: list[Headers] = []

    class Listening(Sink):
        def begin_response(self, status: int, headers: Headers, length: int | None, *, has_body: bool) -> None:
            super().begin_response(status, headers, length, has_body=has_body)
            seen.append(headers)

    answers = ResponseParser(1024)
    answers.expect_response(Listening(), bodiless=False)
    answers.feed(OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nSet-Cookie: gw_token=x\r\n\r\n")
    assert answers.done
    assert seen == [[(b"transfer-encoding", b"chunked")]]


@given(st.binary(max_size=200), st.integers(1, 50))
def test_noise_is_refused_or_waits_but_never_fails(noise: bytes, step: int) -> None:
    try:
        read(noise + b"\r\n\r\n", step=step)
    except InvalidResponse:
        return
