"""The client of terminals against a hostile or broken warden."""

import asyncio
import json
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from functools import partial
from pathlib import Path

import pytest

from roost.core.machine import unix_socket
from roost.warden_client.client import WardenClient
from roost.warden_client.errors import (
    ContainerNotRunning,
    WardenDisconnected,
    WardenFailed,
    WardenRequestUnknown,
    WardenTerminalNotFound,
    WardenTerminalTaken,
)
from roost.warden_client.terminal import TerminalOutput, TerminalSize

OK = b'{"ok": true, "session": "abc", "offset": 7}\n'
SIZE = TerminalSize(80, 24)
ScriptedWarden = Callable[[bytes], WardenClient]


def frame(kind: bytes, data: bytes) -> bytes:
    return struct.pack("!cI", kind, len(data)) + data


def error(code: str) -> bytes:
    return json.dumps({"ok": False, "error": code, "message": "no"}).encode()


@pytest.fixture
async def scripted(tmp_path: Path) -> AsyncIterator[ScriptedWarden]:
    """Return a client of a warden that answers every request with the given bytes, and disconnects."""
    answer = b""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(answer)
        writer.close()

    def script(data: bytes) -> WardenClient:
        nonlocal answer
        answer = data
        return WardenClient(partial(unix_socket.connect_unix, tmp_path / "s"))

    async with await asyncio.start_unix_server(handle, tmp_path / "s"):
        yield script


async def read_all(warden: WardenClient) -> list[TerminalOutput]:
    async with (
        warden.terminals.attach("abc", after=7, size=SIZE) as terminal,
        aclosing(terminal.read_output()) as outputs,
    ):
        return [output async for output in outputs]


async def test_output_has_offsets_and_ends_with_the_exit_code(scripted: ScriptedWarden) -> None:
    end = frame(b"x", b'{"ok": true, "code": 3}')
    outputs = await read_all(scripted(OK + frame(b"o", b"one") + frame(b"?", b"unknown") + frame(b"o", b"two") + end))
    assert outputs == [TerminalOutput(7, b"one"), TerminalOutput(10, b"two"), TerminalOutput(13, b"", 3)]


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"", ContainerNotRunning),
        (error("badRequest") + b"\n", WardenRequestUnknown),
        (error("noTerminal") + b"\n", WardenTerminalNotFound),
        (OK + frame(b"x", error("displaced")), WardenTerminalTaken),
        (OK, WardenDisconnected),
        (OK + frame(b"o", b"one")[:-1], WardenDisconnected),
        (OK + struct.pack("!cI", b"o", 1 << 30), WardenFailed),
        (OK + frame(b"x", b"{}"), WardenFailed),
        (OK + frame(b"x", b'{"ok": true}'), WardenFailed),
        (OK + frame(b"x", b'{"ok": true, "code": "x"}'), WardenFailed),
        (OK + frame(b"x", b"[" * 100_000), WardenFailed),
        (b'{"ok": true}\n', WardenFailed),
        (b'{"ok": true, "session": "abc", "offset": -1}\n', WardenFailed),
        (b'{"ok": true, "session": "abc", "offset": 1e300}\n', WardenFailed),
        (b'{"ok": true, "session": "%s", "offset": 0}\n' % (b"x" * 65), WardenFailed),
    ],
)
async def test_bad_answers_are_problems(scripted: ScriptedWarden, answer: bytes, problem: type[Exception]) -> None:
    with pytest.raises(problem):
        await asyncio.wait_for(read_all(scripted(answer)), 10)
