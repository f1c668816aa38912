"""Terminals of containers over every runtime: control of the terminal, reconnects, limits, and the end of processes."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from roost.warden_client.client import WardenClient
from roost.warden_client.errors import (
    ExecRefused,
    WardenBusy,
    WardenDisconnected,
    WardenRequestUnknown,
    WardenTerminalNotFound,
    WardenTerminalTaken,
)
from roost.warden_client.terminal import AttachedTerminal, TerminalOutput, TerminalSize
from tests.conformance.runtimes import AGENT, CARRIER_CASES, RuntimeEnv, open_runtime_env, sleeper, sleeping, until

SIZE = TerminalSize(80, 24)
RING_BYTES = 256 * 1024


class Screen:
    """Client of a terminal that collects its output."""

    def __init__(self, terminal: AttachedTerminal, outputs: AsyncGenerator[TerminalOutput, None]) -> None:
        self.terminal, self._outputs = terminal, outputs
        self.first: int | None = None
        self.text = b""

    async def find(self, pattern: bytes) -> re.Match[bytes]:
        """Read output until it has the pattern, and forget what is before its end."""
        async with asyncio.timeout(20):
            while not (found := re.search(pattern, self.text)):
                assert await self._read() is None, self.text[-500:]
        self.text = self.text[found.end() :]
        return found

    async def end(self) -> int:
        """Read to the end; return the exit code."""
        async with asyncio.timeout(20):
            while (code := await self._read()) is None:
                continue
        return code

    async def _read(self) -> int | None:
        output = await anext(self._outputs)
        self.first = output.offset if self.first is None else self.first
        self.text += output.data
        return output.exit_code

    async def type(self, text: bytes) -> None:
        await self.terminal.write(text)


@pytest.fixture(params=CARRIER_CASES)
async def env(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[RuntimeEnv]:
    async with open_runtime_env(request.param, tmp_path) as found:
        yield found


@pytest.fixture
async def container(env: RuntimeEnv) -> WardenClient:
    return await env.container()


@asynccontextmanager
async def open_screen(container: WardenClient, *argv: str, grace: float = 60, **env: str) -> AsyncIterator[Screen]:
    argv = argv or ("bash", "--norc", "--noprofile")
    values = {"PS1": "$ ", "TERM": "dumb", "HISTFILE": "", **env}
    async with (
        container.terminals.open(argv, env=values, size=SIZE, grace_seconds=grace) as terminal,
        aclosing(terminal.read_output()) as outputs,
    ):
        yield Screen(terminal, outputs)


@asynccontextmanager
async def attach_screen(container: WardenClient, session: str, **options: Any) -> AsyncIterator[Screen]:
    options = {"after": 0, "size": SIZE, **options}
    async with (
        container.terminals.attach(session, **options) as terminal,
        aclosing(terminal.read_output()) as outputs,
    ):
        yield Screen(terminal, outputs)


async def test_a_shell_controls_its_terminal(container: WardenClient, env: RuntimeEnv) -> None:
    async with open_screen(container, COLOUR="blue") as screen:
        await screen.type(b"tty; stty size; echo $COLOUR $PWD/ $((6 * 7))\n")
        await screen.find(rb"\n/dev/pts/\d+\r\n24 80\r\nblue /\S*workspace/ 42\r\n")
        await screen.type(b"ps -o pid=,sid=,tpgid= -p $$ | tr -s ' ' ,; echo\n")
        pid, session, _ = (await screen.find(rb"\n,?(\d+),(\d+),(\d+)\r")).groups()
        assert pid == session
        await screen.type(b"exit 7\n")
        assert await screen.end() == 7


async def test_the_last_output_and_the_exit_code_can_be_read_again(container: WardenClient) -> None:
    """Who read them first, a server, may have been killed before it passed them on."""
    async with open_screen(container, "sh", "-c", "echo last; exit 7") as screen:
        assert await screen.end() == 7
    for after in (0, len(b"last\r\n")):
        async with attach_screen(container, screen.terminal.session, after=after) as again:
            assert await again.end() == 7
            assert again.text == b"last\r\n"[after:]


async def test_keys_and_signals_reach_the_foreground_job(container: WardenClient) -> None:
    async with open_screen(container) as screen:
        interrupted, stopped = sleeper(), sleeper()
        await screen.type(b"sleep %s\n" % interrupted.encode())
        await until(lambda: sleeping(interrupted))
        await screen.type(b"\x03")
        await screen.find(rb"\^C")
        await screen.type(b"echo code=$?; sleep %s\n" % stopped.encode())
        await screen.find(rb"code=130\r\n")
        await until(lambda: sleeping(stopped))
        await screen.type(b"\x1a")
        await screen.find(rb"Stopped +sleep")
        await screen.type(b"fg\n")
        await screen.find(rb"\nsleep")
        await until(lambda: sleeping(stopped, "RSD"))  # the shell gives it the terminal before it goes on
        await screen.terminal.send_signal("INT")
        await until(lambda: not sleeping(stopped))
        await screen.type(b"echo code=$?\n")
        await screen.find(rb"code=130\r\n")


_WAIT_FOR_RESIZE = """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGWINCH})
print("ready", flush=True)
signal.sigwait({signal.SIGWINCH})
print("size", *os.get_terminal_size())
"""


async def test_a_resize_tells_the_program(container: WardenClient) -> None:
    """A program of our own waits for the signal: a shell's trap misses it in the moment before its prompt."""
    async with open_screen(container, "python3", "-c", _WAIT_FOR_RESIZE) as screen:
        await screen.find(rb"ready\r\n")
        await screen.terminal.resize(TerminalSize(132, 50))
        await screen.find(rb"size 132 50\r\n")


async def test_erasing_removes_a_whole_character(container: WardenClient) -> None:
    async with open_screen(container, "cat") as screen:
        await screen.type("aü\x7fb\n".encode())
        await screen.find(rb"\nab\r\n")


async def test_a_session_outlives_its_connection(container: WardenClient) -> None:
    async with open_screen(container) as screen:
        await screen.type(b"echo be''fore; read line\n")
        await screen.find(rb"before\r\n")
    size = TerminalSize(100, 40)
    async with attach_screen(container, screen.terminal.session, size=size) as again:
        await again.find(rb"before\r\n")
        assert again.first == 0
        await again.type(b"x\necho got $line; stty size; exit 3\n")
        await again.find(rb"got x\r\n40 100\r\n")
        assert await again.end() == 3


async def test_output_is_repeated_from_an_offset(container: WardenClient) -> None:
    async with open_screen(container, "sh", "-c", "printf 0123456789; read x") as screen:
        await screen.find(b"9")
    async with attach_screen(container, screen.terminal.session, after=4) as again:
        await again.find(b"456789")
        assert again.first == 4
    async with attach_screen(container, screen.terminal.session, after=1 << 40) as again:
        await again.type(b"\n")
        assert await again.end() == 0
        assert again.first == 10


async def test_the_end_and_a_gap_while_nobody_was_connected(container: WardenClient, env: RuntimeEnv) -> None:
    program = "read x; head -c 1000000 /dev/zero | tr '\\0' z; touch done; exit 5"
    async with open_screen(container, "sh", "-c", program) as screen:
        await screen.type(b"\n")
        await screen.find(b"z")
    await until((env.workspace() / "done").exists)
    async with attach_screen(container, screen.terminal.session) as again:
        assert await again.end() == 5
    assert again.first == 1_000_002 - RING_BYTES  # with the echo of the line
    assert again.text == b"z" * RING_BYTES


async def test_a_new_client_displaces_the_one_before(container: WardenClient) -> None:
    async with open_screen(container, "cat") as first, attach_screen(container, first.terminal.session) as second:
        with pytest.raises(WardenTerminalTaken):
            await first.end()
        await second.type(b"mine\n")
        await second.find(rb"mine\r\nmine\r\n")


async def test_a_client_that_does_not_read_stops_the_program(container: WardenClient, env: RuntimeEnv) -> None:
    """All output reaches it when it reads again, and the warden stays small."""
    counting = (
        "i=0; while [ $i -lt 40000 ]; do echo 0123456789012345678901234567890123456789; i=$((i+1)); done; touch end"
    )
    async with open_screen(container, "bash", "-c", counting) as screen:
        before = await _written(container)
        while (now := await _written(container)) != before:  # it stops, long before its end
            before = now
        assert not (env.workspace() / "end").exists()
        assert await screen.end() == 0
        assert screen.text == b"0123456789012345678901234567890123456789\r\n" * 40_000


async def _written(container: WardenClient) -> bytes:
    """Return how much the program has written, after a moment."""
    program = "sleep 0.1; cat /proc/[0-9]*/io 2>/dev/null | grep wchar | sort | tail -1"
    return (await container.exec(["bash", "-c", program])).stdout


async def test_acknowledgements_bound_what_is_under_way(container: WardenClient) -> None:
    async with open_screen(container, "sh", "-c", "read x; head -c 600000 /dev/zero | tr '\\0' z") as screen:
        await screen.terminal.acknowledge(0)
        await screen.type(b"\n")
        reading = asyncio.create_task(screen.end())
        before = -1
        while before != len(screen.text) or not before:
            before = len(screen.text)
            await asyncio.sleep(0.2)
        assert 0 < before < 128 * 1024
        acknowledged = 0
        while not reading.done():
            if len(screen.text) > acknowledged:
                acknowledged = len(screen.text)
                await screen.terminal.acknowledge(acknowledged)
            await asyncio.sleep(0)
        assert await reading == 0
        assert len(screen.text) == 600_002  # with the echo of the line


async def test_large_input_arrives_whole(container: WardenClient) -> None:
    program = "stty raw -echo; echo ready; head -c 1000000 | cksum"
    async with open_screen(container, "sh", "-c", program) as screen:
        await screen.find(b"ready")
        for _ in range(10):
            await screen.type(bytes(range(250)) * 400)
        wanted = await container.exec(["cksum"], stdin=bytes(range(250)) * 4000)
        await screen.find(re.escape(wanted.stdout.strip()))


async def test_unread_input_does_not_keep_a_lost_client(container: WardenClient) -> None:
    duration = sleeper()
    async with open_screen(container, "sh", "-c", f"stty raw; exec sleep {duration}", grace=0.2) as screen:
        await until(lambda: sleeping(duration))
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                while True:
                    await screen.type(b"x" * 16_384)
    await until(lambda: not sleeping(duration))


async def test_processes_end_after_the_grace_period(container: WardenClient) -> None:
    """Also those that ignore the hang-up or have left the session; not those of a terminal that ended by itself."""
    ignoring, leaving, staying = sleeper(), sleeper(), sleeper()
    async with open_screen(container, "sh", "-c", f"setsid nohup sleep {staying} >out 2>&1 & sleep 0.2") as screen:
        assert await screen.end() == 0
    program = f"trap '' HUP; setsid sleep {leaving} & sleep {ignoring}"
    async with open_screen(container, "sh", "-c", program, grace=0.2) as screen:
        await until(lambda: sleeping(ignoring) and sleeping(leaving))
    await until(lambda: not sleeping(ignoring) and not sleeping(leaving))
    assert sleeping(staying)
    with pytest.raises(WardenTerminalNotFound):
        await attach_until_gone(container, screen.terminal.session)


async def attach_until_gone(container: WardenClient, session: str) -> None:
    """Attach again and again: a session goes a moment after its processes."""
    async with asyncio.timeout(20):
        while True:
            async with container.terminals.attach(session, after=0, size=SIZE):
                await asyncio.sleep(0.05)


async def test_the_number_of_terminals_is_limited(container: WardenClient) -> None:
    """A terminal without a client gives way to a new one."""
    screens = [open_screen(container, "cat") for _ in range(8)]
    opened = [await screen.__aenter__() for screen in screens]
    with pytest.raises(WardenBusy):
        await open_screen(container, "cat").__aenter__()
    await screens[3].__aexit__(None, None, None)
    async with asyncio.timeout(20):
        while True:
            try:
                async with open_screen(container, "sh", "-c", "exit 4") as screen:
                    assert await screen.end() == 4
                break
            except WardenBusy:  # the warden has not noticed the disconnect yet
                await asyncio.sleep(0.01)
    with pytest.raises(WardenTerminalNotFound):
        await container.terminals.attach(opened[3].terminal.session, after=0, size=SIZE).__aenter__()
    for screen in (*screens[:3], *screens[4:]):
        await screen.__aexit__(None, None, None)


async def test_refused_terminals_leave_none_open(container: WardenClient) -> None:
    with pytest.raises(ExecRefused):
        await open_screen(container, "no-such-program").__aenter__()
    for session in ("", "0" * 32, "x" * 10_000):
        with pytest.raises(WardenTerminalNotFound):
            await container.terminals.attach(session, after=0, size=SIZE).__aenter__()
    with pytest.raises(WardenRequestUnknown):
        await container.terminals.open(["cat"], env={}, size=TerminalSize(1 << 16, 1), grace_seconds=1).__aenter__()


async def test_the_end_of_the_container_ends_its_terminals(container: WardenClient, env: RuntimeEnv) -> None:
    async with open_screen(container, "cat") as screen:
        await env.runtime.stop(AGENT, grace=0)
        with pytest.raises(WardenDisconnected):
            await screen.end()
