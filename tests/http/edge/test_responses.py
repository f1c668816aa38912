import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.sensitive import Sensitive
from roost.http.edge.dependencies import ProxyLimits
from roost.http.edge.gateway_connection import GatewayConnection, InvalidResponse
from roost.http.server.request_head import Headers
from roost.http.server.write_coalescer import DirectWriter


class FakeTransport:
    """Transport that counts for open until it is aborted."""

    def __init__(self) -> None:
        self.aborted = False

    def write(self, data: bytes) -> None: ...
    def is_closing(self) -> bool:
        return self.aborted

    def is_reading(self) -> bool:
        return True

    def abort(self) -> None:
        self.aborted = True


class ResponseRecorder:
    """Handler that keeps one response."""

    def __init__(self, *, upgrades: bool = False) -> None:
        self.upgrades = upgrades
        self.hints: list[int] = []
        self.status = 0
        self.headers: Headers = []
        self.length: int | None = None
        self.has_body: bool | None = None
        self.data = b""
        self.done = self.reusable = self.failed = False

    def forward_informational(self, status: int, headers: Headers) -> None:
        self.hints.append(status)

    def begin_tunnel(self, headers: Headers) -> None:
        if not self.upgrades:
            raise InvalidResponse
        self.status = 101

    def begin_response(self, status: int, headers: Headers, length: int | None, *, has_body: bool) -> None:
        assert self.status == 0, "answered twice"
        self.status, self.headers, self.length, self.has_body = status, headers, length, has_body

    def open_tunnel(self) -> None:
        self.flush_response()

    def write_body(self, data: bytes) -> None:
        assert self.status
        self.data += data

    def flush_response(self) -> None: ...
    def finish_response(self, *, reusable: bool) -> None:
        self.done, self.reusable = True, reusable

    def fail_response(self, *, retry: bool) -> None:
        self.failed = True

    def pause_request(self) -> None: ...
    def resume_request(self) -> None: ...
    def drop(self) -> None: ...


def connection() -> GatewayConnection:
    credential, limits = ("a", Sensitive("b")), ProxyLimits(head=1024)
    gateway = GatewayConnection(("agent", None, None), credential, limits, lambda _: None, DirectWriter())
    gateway.transport = FakeTransport()  # pyright: ignore[reportAttributeAccessIssue] - a part of one
    return gateway


def read(data: bytes, *, bodiless: bool = False, step: int | None = None) -> tuple[GatewayConnection, ResponseRecorder]:
    gateway, response = connection(), ResponseRecorder()
    gateway.send_request(response, b"", bodiless=bodiless)
    for start in range(0, len(data), step or len(data)):
        gateway.data_received(data[start : start + (step or len(data))])
        if response.done:
            gateway.release(0)
    return gateway, response


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
        (b"HTTP/1.1 304 Not Modified\r\nETag: a\r\n\r\n", 304, b"", True),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n", 304, b"", False),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 1\r\n\r\nx", 200, b"x", True),
        (b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + OK + b"Content-Length: 1\r\n\r\nx", 200, b"x", True),
    ],
)
def test_whole_answers_are_read_in_any_steps(
    data: bytes, status: int, body: bytes, reusable: bool, step: int | None
) -> None:
    _, response = read(data, step=step)
    assert (response.status, response.data, response.done, response.reusable) == (status, body, True, reusable)


def test_an_answer_without_a_length_ends_with_the_connection() -> None:
    gateway, response = read(OK + b"\r\nsome")
    assert (response.data, response.has_body, response.done) == (b"some", True, False)
    gateway.connection_lost(None)
    assert (response.done, response.reusable, response.failed) == (True, False, False)


def test_an_answer_to_head_has_no_body_and_the_next_one_is_read() -> None:
    gateway, response = read(OK + b"Content-Length: 0\r\n\r\n", bodiless=True)
    assert (response.done, response.reusable, response.has_body) == (True, True, False)
    again = ResponseRecorder()
    gateway.send_request(again, b"", bodiless=False)
    gateway.data_received(OK + b"Content-Length: 2\r\n\r\nhi")
    assert (again.data, again.done) == (b"hi", True)


@pytest.mark.parametrize("framing", [b"Content-Length: 5\r\n", b"Transfer-Encoding: chunked\r\n"])
def test_a_body_that_may_follow_an_answer_to_head_never_meets_another_request(framing: bytes) -> None:
    _, response = read(OK + framing + b"\r\n", bodiless=True)
    assert (response.done, response.reusable, response.has_body) == (True, False, False)


@pytest.mark.parametrize("extra", [b"x", b"\r\n\r\nx", OK + b"Content-Length: 0\r\n\r\n", b"HTTP/1.1 200 OK\r\n"])
@pytest.mark.parametrize("bodiless", [False, True])
def test_bytes_after_an_answer_are_dropped_and_end_the_connection(extra: bytes, bodiless: bool) -> None:
    body = b"" if bodiless else b"hi"
    _, response = read(OK + b"Content-Length: 2\r\n\r\n" + body + extra, bodiless=bodiless)
    assert (response.data, response.done, response.reusable) == (body, True, False)


def test_input_on_an_idle_connection_ends_it() -> None:
    gateway, response = read(OK + b"Content-Length: 2\r\n\r\nhi")
    assert response.reusable
    gateway.data_received(OK)
    assert gateway.transport.is_closing()


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
    gateway, response = read(data)
    assert response.failed
    assert gateway.transport.is_closing()


def test_a_head_that_never_ends_is_bounded() -> None:
    gateway, response = read(b"HTTP/1.1 200 OK\r\nX: ")
    for _ in range(1000):
        gateway.data_received(b"y")
    assert not response.failed
    gateway.data_received(b"y" * 100)
    assert response.failed


def test_a_switch_that_was_asked_for_leaves_the_rest() -> None:
    gateway, response = connection(), ResponseRecorder(upgrades=True)
    gateway.send_request(response, b"", bodiless=False)
    gateway.data_received(b"HTTP/1.1 101 SP\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n\x81\x02hi")
    assert (response.status, response.data) == (101, b"\x81\x02hi")


def test_trailers_are_not_taken_for_headers() -> None:
    _, response = read(OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nSet-Cookie: gw_token=x\r\n\r\n")
    assert response.done
    assert response.headers == [(b"transfer-encoding", b"chunked")]


@given(st.binary(max_size=200), st.integers(1, 50))
def test_noise_is_refused_or_waits_but_never_fails(noise: bytes, step: int) -> None:
    _, response = read(noise + b"\r\n\r\n", step=step)
    assert not response.reusable
