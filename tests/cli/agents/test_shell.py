"""`roost shell` on a pseudo-terminal and a real server: keys, sizes, reconnects, and the terminal restored."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import pytest

from roost.cli.agents.shell import EscapeFilter
from tests.cli.pty_client import TerminalUser, run_on_pty
from tests.cli.terminal import run
from tests.conformance.runtimes import sleeper, sleeping, until
from tests.support.server import RunningServer, running

LOST = rb"\[The connection was lost; connecting again. ~. leaves.\]"


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    async with running(tmp_path_factory.mktemp("d") / "data") as server:
        assert (await server.client(server.key()).post("/v0/agents", json={"name": "Ada"})).status_code == 201
        yield server


def shell(server: RunningServer, *arguments: str) -> AbstractAsyncContextManager[TerminalUser]:
    return run_on_pty("shell", *arguments, ROOST_URL=f"http://127.0.0.1:{server.port}", ROOST_TOKEN=server.key())


async def test_shell_is_a_terminal(server: RunningServer) -> None:
    async with shell(server, "Ada") as user:
        await user.find(rb"[$#] ")
        user.type(b"stty size; tput colors; echo $((6 * 7))\r")
        await user.find(rb"24 80\r\n256\r\n42\r\n")
        await user.resize_shell(120, 33)
        duration = sleeper()
        user.type(b"sleep %s\r" % duration.encode())
        await until(lambda: sleeping(duration))
        user.type(b"\x03")
        await user.find(rb"\^C")
        user.type(b"exit 7\r")
        assert await user.exit_code() == 7


async def test_command_runs_in_a_terminal(server: RunningServer) -> None:
    async with shell(server, "Ada", "--", "sh", "-c", "test -t 0 && echo 'a terminal'; exit 3") as user:
        await user.find(b"a terminal\r\n")
        assert await user.exit_code() == 3


async def test_raw_mode_ends_with_the_shell(server: RunningServer) -> None:
    async with shell(server, "Ada", "printf ready; read x") as user:
        await user.find(b"ready")
        assert user.modes() != user.cooked
        user.type(b"\r")
        assert await user.exit_code() == 0
        assert user.modes() == user.cooked


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_restores_the_terminal(server: RunningServer, number: int) -> None:
    async with shell(server, "Ada", "tput smcup; printf ready; exec sleep 100") as user:
        await user.find(b"ready")
        user.process.send_signal(number)
        assert await user.exit_code() == 1
        await user.find(rb"\x1b\[\?1049l")
        assert user.modes() == user.cooked


async def test_the_way_out(server: RunningServer) -> None:
    async with shell(server, "Ada", "stty raw; printf ready; exec sleep 100") as user:
        await user.find(b"ready")
        user.type(b"x~.~~\r~.")
        assert await user.exit_code() == 1
        await user.find(b"The session was left; its programs end in 60 seconds.")


async def test_a_lost_connection_is_replaced(server: RunningServer) -> None:
    async with breakable_path(server.port) as path:
        environment: dict[str, Any] = {"ROOST_URL": f"http://127.0.0.1:{path.port}", "ROOST_TOKEN": server.key()}
        async with run_on_pty("shell", "Ada", "printf one; read x; echo got $x; exit 5", **environment) as user:
            await user.find(b"one")
            path.break_streams()
            await user.find(LOST)
            user.type(b"two\r")
            await user.find(b"got two\r\n")
            assert await user.exit_code() == 5
            assert b"one" not in user.text


class BreakablePath:
    """Forwards connections to a port until it breaks them."""

    def __init__(self, target: int) -> None:
        self.port, self._target = 0, target
        self._writers: list[asyncio.StreamWriter] = []

    async def forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        other_reader, other_writer = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers += [writer, other_writer]
        with suppress(OSError):
            await asyncio.gather(_copy(reader, other_writer), _copy(other_reader, writer))

    def break_streams(self) -> None:
        for writer in self._writers:
            writer.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


@asynccontextmanager
async def breakable_path(target: int) -> AsyncIterator[BreakablePath]:
    path = BreakablePath(target)
    listener = await asyncio.start_server(path.forward, "127.0.0.1", 0)
    path.port = listener.sockets[0].getsockname()[1]
    try:
        yield path
    finally:
        path.break_streams()
        listener.close()


def test_it_needs_a_terminal() -> None:
    failed = run("shell", "Ada")
    assert (failed.exit_code, "needs a terminal" in failed.stderr) == (2, True)


async def test_errors_restore_the_terminal(server: RunningServer) -> None:
    async with shell(server, "Eve") as user:
        await user.find(b"There is no agent 'Eve'")
        assert await user.exit_code() == 5
    async with shell(server, "Ada", " ") as user:
        await user.find(b"Invalid command")
        assert await user.exit_code() == 2
        assert user.modes() == user.cooked


@pytest.mark.parametrize(
    ("keys", "passed", "leaving"),
    [
        (b"ls\r", b"ls\r", False),
        (b"~.", b"", True),
        (b"x~.", b"x~.", False),
        (b"ls\r~.rest", b"ls\r", True),
        (b"~~.\r", b"~.\r", False),
        (b"~x\r~y", b"~x\r~y", False),
        (b"~\r~.", b"~\r", True),
    ],
)
def test_the_escape_key(keys: bytes, passed: bytes, leaving: bool) -> None:
    whole, single = EscapeFilter(), EscapeFilter()
    assert (whole.filter(keys), whole.is_leaving) == (passed, leaving)
    found = b""
    for index in range(len(keys)):
        if not single.is_leaving:
            found += single.filter(keys[index : index + 1])
    assert (found, single.is_leaving) == (passed, leaving)
