"""Requests that two readers could understand differently, each with a second request hidden behind or in it.

In a request, `@` stands for the lines of a valid Host and Authorization, `GET` and `POST` for a request line of the
site, and `HIDDEN` for a valid request of its own.
"""

from collections.abc import Mapping

from tests.contract.hosts import HostExample

MARK = "hidden-in-another"
"""The request id of the hidden request."""

FRAMING: Mapping[str, bytes] = {
    "length and coding": b"POST@Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nHIDDEN",
    "coding and length": b"POST@Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\nHIDDEN",
    "coding and length of both": b"POST@Transfer-Encoding: chunked\r\nContent-Length: 400\r\n\r\n0\r\n\r\nHIDDEN",
    "equal lengths": b"POST@Content-Length: 0\r\nContent-Length: 0\r\n\r\nHIDDEN",
    "different lengths": b"POST@Content-Length: 0\r\nContent-Length: 400\r\n\r\nHIDDEN",
    "lengths in a list": b"POST@Content-Length: 0, 400\r\n\r\nHIDDEN",
    "length with a sign": b"POST@Content-Length: +0\r\n\r\nHIDDEN",
    "negative length": b"POST@Content-Length: -1\r\n\r\nHIDDEN",
    "hexadecimal length": b"POST@Content-Length: 0x0\r\n\r\nHIDDEN",
    "length with a space": b"POST@Content-Length: 0 0\r\n\r\nHIDDEN",
    "empty length": b"POST@Content-Length:\r\n\r\nHIDDEN",
    "length beyond 64 bits": b"POST@Content-Length: 18446744073709551616\r\n\r\nHIDDEN",
    "length with a space before the colon": b"POST@Content-Length : 400\r\n\r\nHIDDEN",
    "unknown coding": b"POST@Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\nHIDDEN",
    "identity": b"POST@Transfer-Encoding: identity\r\n\r\n0\r\n\r\nHIDDEN",
    "gzip and chunked": b"POST@Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\nHIDDEN",
    "chunked and gzip": b"POST@Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\nHIDDEN",
    "chunked twice": b"POST@Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\nHIDDEN",
    "two codings": b"POST@Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\nHIDDEN",
    "quoted coding": b'POST@Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\nHIDDEN',
    "coding with a parameter": b"POST@Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\nHIDDEN",
    "coding after a vertical tab": b"POST@Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\nHIDDEN",
    "coding after a line break": b"POST@Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\nHIDDEN",
    "coding with a space before the colon": b"POST@Transfer-Encoding : chunked\r\n\r\n0\r\n\r\nHIDDEN",
    "empty coding": b"POST@Transfer-Encoding:\r\n\r\n0\r\n\r\nHIDDEN",
    "folded line": b"GET@X: a\r\n Content-Length: 400\r\n\r\nHIDDEN",
    "folded first line": b"GET\r\n Content-Length: 400@\r\nHIDDEN",
    "bare carriage return": b"GET@X: a\rContent-Length: 400\r\n\r\nHIDDEN",
    "bare line feed": b"GET@X: a\nContent-Length: 400\r\n\r\nHIDDEN",
    "head with line feeds alone": b"GET@X: a\n\nHIDDEN",
    "NUL in a value": b"GET@X: a\0b\r\n\r\nHIDDEN",
    "control character in a value": b"GET@X: a\x01b\r\n\r\nHIDDEN",
    "DEL in a value": b"GET@X: a\x7fb\r\n\r\nHIDDEN",
    "NUL in a name": b"GET@X\0: a\r\n\r\nHIDDEN",
    "8 bits in a name": b"GET@X\xe4: a\r\n\r\nHIDDEN",
    "space in a name": b"GET@Content Length: 400\r\n\r\nHIDDEN",
    "empty name": b"GET@: a\r\n\r\nHIDDEN",
    "no colon": b"GET@Content-Length\r\n\r\nHIDDEN",
    "two hosts": b"GET@Host: evil.example\r\n\r\nHIDDEN",
    "the same host twice": b"GET@Host: {host}\r\n\r\nHIDDEN",
    "no host": b"GET\r\nAuthorization: Bearer x\r\n\r\nHIDDEN",
    "two upgrades": b"GET@Connection: Upgrade\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n\r\nHIDDEN",
    "handshake with a body": b"GET@Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 3\r\n\r\nabcHIDDEN",
    "chunked handshake": b"GET@Connection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nHIDDEN",
}  # fmt: skip
"""Answered with 400 by any kind of host; then the connection is closed, and HIDDEN was not read as a request."""

LINES: Mapping[str, tuple[bytes, int]] = {
    "absolute form": (b"GET http://{host}{path} HTTP/1.1@\r\nHIDDEN", 421),
    "absolute form of another host": (b"GET http://{victim}/v0/logs HTTP/1.1@\r\nHIDDEN", 421),
    "absolute form with HTTPS": (b"GET https://{victim}/ HTTP/1.1@\r\nHIDDEN", 421),
    "absolute form with a user": (b"GET http://{host}{at}{victim}/ HTTP/1.1@\r\nHIDDEN", 421),
    "authority form": (b"GET {victim}:80 HTTP/1.1@\r\nHIDDEN", 400),
    "asterisk with GET": (b"GET * HTTP/1.1@\r\nHIDDEN", 421),
    "no slash": (b"GET v0/agents HTTP/1.1@\r\nHIDDEN", 400),
    "fragment": (b"GET {path}#x HTTP/1.1@\r\nHIDDEN", 400),
    "8 bits in a path": (b"GET /\xc3\xa4 HTTP/1.1@\r\nHIDDEN", 400),
    "NUL in a path": (b"GET {path}\0 HTTP/1.1@\r\nHIDDEN", 400),
    "space in a path": (b"GET {path} x HTTP/1.1@\r\nHIDDEN", 400),
    "tab for a space": (b"GET\t{path} HTTP/1.1@\r\nHIDDEN", 400),
    "CONNECT": (b"CONNECT {victim}:80 HTTP/1.1@\r\nHIDDEN", 405),
    "CONNECT with a path": (b"CONNECT {path} HTTP/1.1@\r\nHIDDEN", 405),
    "unknown method": (b"BREW {path} HTTP/1.1@\r\nHIDDEN", 400),
    "method in lower case": (b"get {path} HTTP/1.1@\r\nHIDDEN", 400),
    "no version": (b"GET {path}\r\n\r\nHIDDEN", 505),
    "HTTP/0.9": (b"GET {path} HTTP/0.9@\r\nHIDDEN", 505),
    "HTTP/1.2": (b"GET {path} HTTP/1.2@\r\nHIDDEN", 400),
    "HTTP/2.0": (b"GET {path} HTTP/2.0@\r\nHIDDEN", 505),
    "HTTP/11": (b"GET {path} HTTP/11@\r\nHIDDEN", 400),
    "another protocol": (b"GET {path} ICY/1.1@\r\nHIDDEN", 400),
    "HTTP/2 with prior knowledge": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nHIDDEN", 400),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(90) + b"HIDDEN", 400),
    "PROXY protocol": (b"PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\nGET@\r\nHIDDEN", 400),
    "large header": (b"GET@X: " + b"x" * 200_000 + b"\r\n\r\nHIDDEN", 431),
    "many headers": (b"GET@" + b"X: y\r\n" * 300 + b"\r\nHIDDEN", 431),
    "many small headers": (b"GET@" + b"X:\r\n" * 20_000 + b"\r\nHIDDEN", 431),
    "long name": (b"GET@" + b"x" * 200_000 + b": 1\r\n\r\nHIDDEN", 431),
    "long path": (b"GET /" + b"x" * 200_000 + b" HTTP/1.1@\r\nHIDDEN", 431),
    "long host": (b"GET\r\nHost: " + b"x" * 200_000 + b"\r\n\r\nHIDDEN", 431),
    "coding in HTTP/1.0": (b"POST {path} HTTP/1.0@Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nHIDDEN", 400),
}
"""Answered with that status by any kind of host, and as FRAMING."""

CHUNKS: Mapping[str, bytes] = {
    "no number": b"zz\r\nabc\r\n0\r\n\r\nHIDDEN",
    "negative": b"-3\r\nabc\r\n0\r\n\r\nHIDDEN",
    "with a prefix": b"0x3\r\nabc\r\n0\r\n\r\nHIDDEN",
    "with a sign": b"+3\r\nabc\r\n0\r\n\r\nHIDDEN",
    "with a space before it": b" 3\r\nabc\r\n0\r\n\r\nHIDDEN",
    "empty": b"\r\nHIDDEN",
    "beyond 64 bits": b"10000000000000003\r\nabc\r\n0\r\n\r\nHIDDEN",
    "with an underscore": b"0_3\r\nabc\r\n0\r\n\r\nHIDDEN",
    "longer than its size": b"3\r\nabcdef\r\n0\r\n\r\nHIDDEN",
    "line feed after the size": b"3\nabc\r\n0\r\n\r\nHIDDEN",
    "line feed after the data": b"3\r\nabc\n0\r\n\r\nHIDDEN",
    "line feed after the last": b"3\r\nabc\r\n0\n\nHIDDEN",
    "carriage return in an extension": b"3;a\rb\r\nabc\r\n0\r\n\r\nHIDDEN",
    "line feed in an extension": b"3;a\n400\r\nabc\r\n0\r\n\r\nHIDDEN",
    "NUL in an extension": b"3;a\0\r\nabc\r\n0\r\n\r\nHIDDEN",
    "bad name of a trailer": b"3\r\nabc\r\n0\r\nBad Name: x\r\n\r\nHIDDEN",
    "folded trailer": b"3\r\nabc\r\n0\r\nX: a\r\n b\r\n\r\nHIDDEN",
    "NUL in a trailer": b"3\r\nabc\r\n0\r\nX: \0\r\n\r\nHIDDEN",
    "endless extension": b"3;" + b"x" * 600_000 + b"\r\nabc\r\n0\r\n\r\nHIDDEN",
    "endless size": b"0" * 600_000 + b"3\r\nabc\r\n0\r\n\r\nHIDDEN",
    "endless trailer": b"3\r\nabc\r\n0\r\nX: " + b"x" * 600_000 + b"\r\n\r\nHIDDEN",
}
"""Broken chunks after a valid head: the answer may come before they are read, then the connection is closed."""


OK, HIDDEN_ANSWER = b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nX-Hidden: 1\r\n\r\nforged"
ANSWERS: Mapping[str, tuple[bytes, int]] = {
    "no HTTP": (b"SSH-2.0-OpenSSH_9.6\r\n", 502),
    "HTTP/2": (b"HTTP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n", 502),
    "status 999": (b"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n", 502),
    "status 99": (b"HTTP/1.1 099 Odd\r\nContent-Length: 0\r\n\r\n", 502),
    "both framings": (OK + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + HIDDEN_ANSWER, 502),
    "two lengths": (OK + b"Content-Length: 0\r\nContent-Length: 99\r\n\r\n" + HIDDEN_ANSWER, 502),
    "negative length": (OK + b"Content-Length: -1\r\n\r\n", 502),
    "unknown coding": (OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 502),
    "coding in HTTP/1.0": (b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 502),
    "folded line": (OK + b"X: a\r\n b\r\nContent-Length: 0\r\n\r\n", 502),
    "bare carriage return": (OK + b"X: a\rSet-Cookie: gw_token=x\r\nContent-Length: 0\r\n\r\n", 502),
    "bare line feed": (OK + b"X: a\nSet-Cookie: gw_token=x\r\nContent-Length: 0\r\n\r\n", 502),
    "NUL": (OK + b"X: a\0b\r\nContent-Length: 0\r\n\r\n", 502),
    "bad name": (OK + b"Bad Name: x\r\nContent-Length: 0\r\n\r\n", 502),
    "10 MB header": (OK + b"X: " + b"y" * 10_000_000 + b"\r\n\r\n", 502),
    "10 MB of headers": (OK + b"X: y\r\n" * 1_600_000 + b"\r\n", 502),
    "switch to HTTP/2": (b"HTTP/1.1 101 SP\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n" + HIDDEN_ANSWER, 502),
    "switch to WebSocket": (b"HTTP/1.1 101 SP\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", 502),
    "hints with a body": (b"HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\nhello" + HIDDEN_ANSWER, 502),
    "endless hints": (b"HTTP/1.1 102 Processing\r\n\r\n" * 10_000, 502),
    "too much": (OK + b"Content-Length: 2\r\n\r\nok" + HIDDEN_ANSWER, 200),
    "more than its length": (OK + b"Content-Length: 2\r\n\r\nok and more", 200),
    "chunks and more": (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n" + HIDDEN_ANSWER, 200),
    "trailers": (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nSet-Cookie: gw_token=x\r\n\r\n", 200),
    "chunk extension": (OK + b"Transfer-Encoding: chunked\r\n\r\n2;a=b\r\nok\r\n0\r\n\r\n", 200),
    "204 with a body": (b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello" + HIDDEN_ANSWER, 204),
    "204 in chunks": (b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", 204),
    "304 with a body": (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello" + HIDDEN_ANSWER, 304),
    "205 with a body": (b"HTTP/1.1 205 Reset Content\r\nContent-Length: 2\r\n\r\nok", 205),
    "interim": (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\nok", 200),
}  # fmt: skip
"""Responses of an agent's program, and the status of the client's."""


def compose_attack(raw: bytes, site: HostExample, victim: str, hidden: bytes) -> bytes:
    """Return the bytes of an attack at a site."""
    good = f"\r\nHost: {site.host}\r\n" + (f"Authorization: Bearer {site.token}\r\n" if site.token else "")
    if raw.startswith((b"GET@", b"GET\r", b"POST@")):
        method, rest = raw[:4].rstrip(b"@\r"), raw[4:] if raw.startswith(b"POST") else raw[3:]
        raw = method + b" {path} HTTP/1.1" + rest
    for name, value in (("{host}", site.host), ("{path}", site.path), ("{victim}", victim)):
        raw = raw.replace(name.encode(), value.encode())
    return raw.replace(b"@", good.encode(), 1).replace(b"{at}", b"@").replace(b"HIDDEN", hidden)


def hidden_request(key: str, port: int) -> bytes:
    """Return a request that would show the caller's agents."""
    lines = ("GET /v0/agents HTTP/1.1", f"Host: agents.localhost:{port}", f"Authorization: Bearer {key}")
    return "\r\n".join((*lines, f"X-Request-Id: {MARK}", "", "")).encode()
