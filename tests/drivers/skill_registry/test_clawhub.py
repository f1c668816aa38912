"""The client of registries against servers that lie, stall and flood. Real registries: tests/contract/test_hub.py."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from roost.drivers.skill_registry import clawhub
from roost.drivers.skill_registry.clawhub import ClawHubRegistry
from roost.drivers.skill_registry.contract import RegistryUnavailable


@asynccontextmanager
async def registry_of(answer: bytes) -> AsyncIterator[ClawHubRegistry]:
    """Run a server that gives one answer to each request, and leaves the connection open."""

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(respond, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield ClawHubRegistry(f"http://127.0.0.1:{port}", httpx2.AsyncHTTPTransport)


def answer_with(body: Any, status: str = "200 OK") -> bytes:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(content)}\r\n\r\n".encode() + content


async def test_rows_are_sanitized_and_those_without_a_name_left_out() -> None:
    rows = [
        {"slug": "a", "summary": "x\x1b[31m\u202ey" + "z" * 5000, "updatedAt": "never", "owner": {"handle": "@Ada"}},
        {"slug": ""},
        {"slug": "s" * 500},
        7,
        {"slug": "c", "version": "1\x1b[31m\ud800", "summary": "\ud800", "updatedAt": float("nan")},
        {"slug": "b", "version": 3, "owner": "x", "ownerHandle": None, "updatedAt": 10**30},
    ]
    async with registry_of(answer_with({"results": rows})) as registry:
        found = await registry.search("q", 20)
    assert [(one.slug, one.owner, one.version) for one in found] == [
        ("a", "ada", None),
        ("c", None, "1\ufffd"),
        ("b", None, None),
    ]
    assert "\x1b" not in found[0].description
    assert "\u202e" not in found[0].description
    assert len(found[0].description) < 1100


async def test_a_missing_skill_is_none() -> None:
    async with registry_of(answer_with({}, "404 Not Found")) as registry:
        assert await registry.find("a", None) is None
        assert await registry.download("a", "ada", "1.0.0") is None


@pytest.mark.parametrize(
    "answer",
    [
        answer_with(b"not json"),
        answer_with(b"[" * 100_000),
        answer_with(b"x" * 2 * 1024**2),
        answer_with({}, "500 Oops"),
        b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
        b"garbage\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
    ],
    ids=["text", "deep", "large", "failure", "redirect", "garbage", "stalled"],
)
async def test_other_answers_are_failures(answer: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clawhub, "_ANSWER_SECONDS", 0.5)
    async with registry_of(answer) as registry:
        with pytest.raises(RegistryUnavailable):
            await registry.search("q", 20)
