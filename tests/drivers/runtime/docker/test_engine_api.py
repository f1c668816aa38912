"""Client of the Docker Engine API, with an engine that answers what a test says."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from roost.drivers.runtime.docker.engine_api import EngineApi, EngineRefused, EngineUnreachable
from tests.architecture.code import ROOT

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def serve(
    folder: Path, answer: bytes, newest: str = "1.43", oldest: str = "1.24"
) -> AsyncIterator[tuple[EngineApi, list[bytes]]]:
    seen: list[bytes] = []
    versions = {"Version": "9.9", "ApiVersion": newest, "MinAPIVersion": oldest}

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if head.startswith(b"GET /version "):
            writer.write(response(200, json.dumps(versions).encode()))
        else:
            seen.append(head)
            writer.write(answer)
        writer.close()

    server = await asyncio.start_unix_server(handle, folder / "s")
    async with server:
        yield EngineApi(folder / "s"), seen


def response(status: int, body: bytes) -> bytes:
    return b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


async def test_a_call_names_the_version_and_encodes_its_query(tmp_path: Path) -> None:
    async with serve(tmp_path, response(200, b'{"a": 1}')) as (api, seen):
        assert await api.call("GET", "/volumes", filters={"label": ["x=y"]}, all=1) == {"a": 1}
    assert seen[0].startswith(b"GET /v1.43/volumes?filters=%7B%22label%22%3A+%5B%22x%3Dy%22%5D%7D&all=1 HTTP/1.1")


async def test_an_error_has_the_reason_of_the_engine(tmp_path: Path) -> None:
    async with serve(tmp_path, response(409, b'{"message": "it exists"}')) as (api, _):
        with pytest.raises(EngineRefused, match="Docker: it exists") as refused:
            await api.call("POST", "/containers/create", {})
    assert refused.value.status == 409


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"])
async def test_something_else_at_the_socket_is_no_engine(tmp_path: Path, answer: bytes) -> None:
    async with serve(tmp_path, answer) as (api, _):
        with pytest.raises(EngineUnreachable):
            await api.call("GET", "/info")


async def test_an_answer_that_is_no_json_is_no_engine(tmp_path: Path) -> None:
    async with serve(tmp_path, response(200, b"<html>")) as (api, _):
        with pytest.raises(EngineUnreachable, match="is this the socket of Docker"):
            await api.call("GET", "/info")


@pytest.mark.parametrize(
    ("newest", "oldest", "used"), [("1.41", "1.12", b"1.41"), ("1.48", "1.24", b"1.44"), ("1.60", "1.50", b"1.50")]
)
async def test_a_version_is_used_that_both_know(tmp_path: Path, newest: str, oldest: str, used: bytes) -> None:
    async with serve(tmp_path, response(200, b"{}"), newest, oldest) as (api, seen):
        await api.call("GET", "/info")
    assert seen[0].startswith(b"GET /v%s/info " % used)


async def test_an_engine_that_is_too_old_says_what_to_install(tmp_path: Path) -> None:
    async with serve(tmp_path, response(200, b"{}"), "1.40") as (api, _):
        with pytest.raises(EngineUnreachable, match=r"Docker 9\.9 is too old: install 20\.10 or newer"):
            await api.call("GET", "/info")


async def test_another_service_is_no_engine(tmp_path: Path) -> None:
    async with serve(tmp_path, b"", "no version") as (api, _):
        with pytest.raises(EngineUnreachable, match="is this its socket"):
            await api.call("GET", "/info")


async def test_a_full_disk_says_what_to_do(tmp_path: Path) -> None:
    async with serve(tmp_path, response(500, b'{"message": "write /x: no space left on device"}')) as (api, _):
        with pytest.raises(EngineRefused, match="free space there"):
            await api.put_archive("a", "/", b"x")


async def test_content_in_parts_stops_at_an_early_answer(tmp_path: Path) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 1
            yield bytes(100_000)
            await asyncio.sleep(0)

    async with serve(tmp_path, response(507, b'{"message": "enough"}')) as (api, seen):
        with pytest.raises((EngineRefused, EngineUnreachable)):
            await api.put_archive("a", "/", endless())
    assert b"Transfer-Encoding: chunked" in seen[0]
    assert sent < 1000


async def test_a_missing_or_silent_socket_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(EngineUnreachable, match=r"start Docker, or set `docker_socket`"):
        await EngineApi(tmp_path / "missing").call("GET", "/info")
    (tmp_path / "file").touch()
    with pytest.raises(EngineUnreachable, match=r"nothing listens there: start Docker"):
        await EngineApi(tmp_path / "file").call("GET", "/info")


async def test_progress_comes_by_lines(tmp_path: Path) -> None:
    async with serve(tmp_path, response(200, b'{"status": "a"}\r\n{"status": "b"}\n')) as (api, _):
        assert [line["status"] async for line in api.follow("POST", "/images/create")] == ["a", "b"]


@pytest.mark.parametrize("answer", [response(409, b"it does not run"), b"HTTP/1.1 101", b"x" * 200_000])
async def test_a_command_that_gets_no_stream(tmp_path: Path, answer: bytes) -> None:
    async with serve(tmp_path, answer) as (api, _):
        with pytest.raises((EngineRefused, EngineUnreachable)):
            await api.attach("id")


def test_all_calls_are_those_that_a_proxy_is_told_to_allow() -> None:
    """The documentation lists them for proxies in front of the socket; names are placeholders in both."""
    documented = set(re.findall(r"`(GET|POST|PUT|DELETE) (/[^`]*)`", (ROOT / "docs/builders/runtimes.md").read_text()))
    called = set[tuple[str, str]]()
    for file in (ROOT / "roost/drivers/runtime/docker").glob("*.py"):
        called |= set(re.findall(r'"(GET|POST|PUT|DELETE)", f?"(/[^"]*)"', file.read_text()))
    assert len(called) > 15
    allowed = {(method, re.sub(r"\{\w+\}", "{}", path)) for method, path in documented}
    assert {(method, re.sub(r"\{[^}]+\}", "{}", path)) for method, path in called} <= allowed
