"""Raw bytes at every kind of host: malformed heads, targets, chunks and hosts, upgrades, pipelines (C7-C9, G7)."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest

from tests.contract.attacks import (
    ANSWERS,
    CHUNKS,
    FRAMING,
    HIDDEN_ANSWER,
    LINES,
    MARK,
    OK,
    compose_attack,
    hidden_request,
)
from tests.contract.hosts import GATEWAY_KINDS, HANDSHAKE, KINDS, PROGRAM_KINDS, HostsEnv, parse_replies, running_hosts

EVERY_HOST = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
async def hosts_env(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[HostsEnv]:
    async with running_hosts(tmp_path_factory.mktemp("hosts") / "data") as hosts_env:
        yield hosts_env


async def attack(hosts_env: HostsEnv, kind: str, raw: bytes) -> Sequence[int]:
    """Return the statuses of all that is answered until the connection is closed."""
    hidden = hidden_request(hosts_env.key, hosts_env.port)
    victim = f"{hosts_env.victim['agentId']}.agents.localhost"
    answer = await hosts_env.send(compose_attack(raw, hosts_env.sites[kind], victim, hidden))
    assert MARK.encode() not in answer, answer
    return [reply.status for reply in parse_replies(answer)]


async def check_unharmed(hosts_env: HostsEnv, kind: str) -> None:
    assert not [head for head in await hosts_env.seen() if MARK in head]
    assert (await hosts_env.ask(hosts_env.sites[kind])).status == 200


@EVERY_HOST
async def test_requests_that_can_be_read_in_two_ways(hosts_env: HostsEnv, kind: str) -> None:
    answers = {name: await attack(hosts_env, kind, raw) for name, raw in FRAMING.items()}
    assert answers == {name: [400] for name in FRAMING}
    await check_unharmed(hosts_env, kind)


@EVERY_HOST
async def test_request_lines_and_sizes(hosts_env: HostsEnv, kind: str) -> None:
    answers = {name: await attack(hosts_env, kind, raw) for name, (raw, _) in LINES.items()}
    assert answers == {name: [status] for name, (_, status) in LINES.items()}
    await check_unharmed(hosts_env, kind)


@EVERY_HOST
async def test_broken_chunks_are_refused_without_harm(hosts_env: HostsEnv, kind: str) -> None:
    head = b"POST@Transfer-Encoding: chunked\r\n\r\n"
    answers = {name: await attack(hosts_env, kind, head + raw) for name, raw in CHUNKS.items()}
    for name, statuses in answers.items():
        assert statuses in ([400], [431], [405]), name  # 405: nobody reads the body
    await check_unharmed(hosts_env, kind)


ODD_HOSTS = (
    *(
        "user@{host}",
        "{host}@evil.example",
        "{host}:80@evil.example",
        "{host}:80:80",
        "{host}:",
        "{host}:x",
        "{host}:-1",
    ),
    *("{host}:123456", "{host}/", "{host}/x", "{host}?x", "{host}#x", "{host} x", "{host}\tx", "{host},evil.example"),
    *(
        "{host}..",
        ".{host}",
        "x.x.{host}",
        "*.{host}",
        "{host}%00",
        "%61{host}",
        "[{host}]",
        "{host}\x80",
        "\xe4{host}",
    ),
    *("evil.example", "[::1", "::1", "[::ffff:127.0.0.1]", "127.1", "2130706433", "0x7f.0.0.1", "0"),
    *("*", "", "a" * 300, "a." * 150, "\u2024".encode().decode("latin-1"), "{host}.{victim}", "_.{host}"),
)


@EVERY_HOST
async def test_hosts_that_are_none(hosts_env: HostsEnv, kind: str) -> None:
    """A name in another form is the same host; with anything around it, it is unknown."""
    site = hosts_env.sites[kind]
    name, _, port = site.host.partition(":")
    for host in (name, f"{name}:1", f"{name}.", f"{name}.:{port}", name.upper()):
        assert (await hosts_env.ask(replace(site, host=host))).status == 200, host
    before = len(await hosts_env.seen())
    for odd in ODD_HOSTS:
        host = odd.format(host=name, victim=hosts_env.victim["agentId"])
        reply = await hosts_env.ask(replace(site, host=host))
        assert reply.status in {400, 404}, (host, reply)
        assert reply.status == 400 or b'"Not found"' in reply.body, (host, reply)
    assert len(await hosts_env.seen()) == before


IGNORED = (
    ("Upgrade: websocket", *HANDSHAKE[2:]),
    ("Upgrade: websocket", "Connection: keep-alive", *HANDSHAKE[2:]),
    ("Connection: Upgrade", *HANDSHAKE[2:]),
    ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk"),
    ("Connection: Upgrade", "Upgrade: websocket, h2c", *HANDSHAKE[2:]),
    ("Connection: Upgrade", "Upgrade: TLS/1.0, HTTP/1.1"),
    ("Connection: Upgrade", "Upgrade:"),
)


@EVERY_HOST
@pytest.mark.parametrize("lines", IGNORED)
async def test_upgrades_that_are_not_taken(hosts_env: HostsEnv, kind: str, lines: Sequence[str]) -> None:
    """The request is answered as if it had none, and so is the next one."""
    site = hosts_env.sites[kind]
    raw = site.head("GET {path}", *lines) + site.head("GET {path}", "Connection: close")
    first, second = parse_replies(await hosts_env.send(raw))
    assert (first.status, second.status) == (200, 200)
    posted = (
        site.head("POST {path}", *lines, "Content-Length: 3") + b"abc" + site.head("GET {path}", "Connection: close")
    )
    assert [reply.status for reply in parse_replies(await hosts_env.send(posted))][1:] == [200]
    old = parse_replies(await hosts_env.send(site.head("GET {path} HTTP/1.0", *lines)))
    assert [reply.status for reply in old] == [200]


@EVERY_HOST
async def test_bytes_after_a_handshake_are_no_request(hosts_env: HostsEnv, kind: str) -> None:
    path = "/ws" if kind in (*GATEWAY_KINDS, *PROGRAM_KINDS) else None
    hidden = hidden_request(hosts_env.key, hosts_env.port)
    head = hosts_env.sites[kind].head("GET {path}", *HANDSHAKE, path=path)
    answer = await hosts_env.send(head + hidden, hidden, end=True)
    assert MARK.encode() not in answer
    assert int(answer.split()[1]) == (101 if path or kind == "agent's platform paths" else 404)
    await check_unharmed(hosts_env, kind)


@pytest.mark.parametrize("kind", PROGRAM_KINDS)
async def test_hostile_answers_reach_no_other_request(hosts_env: HostsEnv, kind: str) -> None:
    """Each is 502 or a well-formed response, and the client's next request gets its own answer."""
    site = hosts_env.sites[kind]
    for name, (answer, status) in ANSWERS.items():
        raw = site.head("GET {path}", path=f"/raw?{await hosts_env.plan(answer)}")
        raw += site.head("GET {path}", "Connection: close", "X-Own: the next", path="/echo")
        first, second = [reply for reply in parse_replies(await hosts_env.send(raw)) if reply.status >= 200]
        assert first.status == status, (name, first)
        assert first.body in {b"", b"ok"} or status == 502, (name, first)
        assert (first["x-hidden"], first["set-cookie"]) == (None, None), name
        assert "x-own: the next" in second.json()["head"], (name, second)


@pytest.mark.parametrize("kind", PROGRAM_KINDS)
@pytest.mark.parametrize("answer", [OK + b"Content-Length: 5\r\n\r\nhello" + HIDDEN_ANSWER, HIDDEN_ANSWER * 2])
async def test_a_body_after_a_response_to_head(hosts_env: HostsEnv, kind: str, answer: bytes) -> None:
    site = hosts_env.sites[kind]
    asked = site.head("HEAD {path}", path=f"/raw?{await hosts_env.plan(answer)}")
    raw = await hosts_env.send(asked + site.head("GET {path}", "Connection: close", path="/echo"))
    head, _, rest = raw.partition(b"\r\n\r\n")
    assert head.startswith(OK)
    (second,) = parse_replies(rest)
    assert "GET /echo" in second.json()["head"]


@pytest.mark.parametrize("kind", PROGRAM_KINDS)
@pytest.mark.parametrize(
    "answer",
    [
        OK + b"Content-Length: 99\r\n\r\nhello",
        OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nfffffffffffffffff\r\n",
    ],
)
async def test_an_incomplete_answer_never_looks_complete(hosts_env: HostsEnv, kind: str, answer: bytes) -> None:
    site = hosts_env.sites[kind]
    raw = await hosts_env.send(
        site.head("GET {path}", path=f"/raw?{await hosts_env.plan(answer)}&close")
        + site.head("GET {path}", "Connection: close", path="/echo")
    )
    if raw.startswith(b"HTTP/1.1 502"):  # nothing had been sent
        assert [reply.status for reply in parse_replies(raw)] == [502, 200]
    else:
        assert raw.endswith(b"hello\r\n" if b"chunked" in answer else b"hello")
