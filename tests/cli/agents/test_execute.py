"""`roost exec` on a real server: streams in both directions, exit codes, Ctrl-C, and pipes that close."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from tests.agents.lifecycle.workflows.lifecycle_env import until
from tests.support.server import RunningServer, running

DEADLINE = 30.0


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    async with running(tmp_path_factory.mktemp("d") / "data") as server:
        assert (await server.client(server.key()).post("/v0/agents", json={"name": "Ada"})).status_code == 201
        yield server


@asynccontextmanager
async def start_exec(server: RunningServer, *arguments: str) -> AsyncIterator[Process]:
    environment = {**os.environ, "ROOST_URL": f"http://127.0.0.1:{server.port}", "ROOST_TOKEN": server.key()}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "roost", "exec", *arguments), env=environment, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    try:
        async with asyncio.timeout(DEADLINE):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def run(server: RunningServer, *arguments: str, stdin: bytes | None = None) -> tuple[int | None, bytes, bytes]:
    async with start_exec(server, *arguments) as process:
        out, err = await process.communicate(stdin)
        return process.returncode, out, err


@pytest.mark.parametrize(
    ("typed", "printed"),
    [
        (["echo one | tr o 0"], b"0ne\n"),
        (["printf", "%s,", "-la", "a b", "--", "--help"], b"-la,a b,--,--help,"),
        (["--", "sh", "-c", "echo $((1 + 2))"], b"3\n"),
        (["--timeout", "100", "printf", "%s,", "--timeout", "-i"], b"--timeout,-i,"),
        (["--cwd=.", "--timeout=9", "--", "printf", "%s", "--cwd"], b"--cwd"),
    ],
)
async def test_a_command_as_it_is_typed(server: RunningServer, typed: list[str], printed: bytes) -> None:
    assert await run(server, "Ada", *typed) == (0, printed, b"")


async def test_the_exit_code_and_both_outputs(server: RunningServer) -> None:
    result = await run(server, "--cwd", ".", "Ada", "printf out; printf err >&2; exit 7")
    assert result == (7, b"out", b"err")


async def test_bytes_pass_unchanged_in_both_directions(server: RunningServer) -> None:
    data = bytes(range(256)) * 8192
    code, out, err = await run(server, "-i", "Ada", "cat", stdin=data)
    assert (code, out == data, err) == (0, True, b"")


async def test_input_and_output_are_interactive(server: RunningServer) -> None:
    async with start_exec(server, "-i", "Ada", "while read word; do echo got $word; done") as process:
        assert process.stdin and process.stdout  # noqa: PT018 - for the types
        for word in (b"one", b"two"):
            process.stdin.write(word + b"\n")
            assert await process.stdout.readline() == b"got " + word + b"\n"
        process.stdin.close()
        assert await process.wait() == 0


async def test_ctrl_c_ends_the_command_too(server: RunningServer) -> None:
    async with start_exec(server, "Ada", "echo started; exec sleep 62.5") as process:
        assert process.stdout
        await process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, err = await process.communicate()
        assert (process.returncode, err) == (130, b"")
    await until(lambda: _has_ended(server, "sleep 62[.]5"))


async def test_a_reader_that_leaves_ends_the_command_quietly(server: RunningServer) -> None:
    async with start_exec(server, "Ada", "exec yes 63.5") as process:
        assert process.stdout
        await process.stdout.readline()
        cast("Any", process.stdout)._transport.close()  # our end alone; the process goes on
        assert await process.wait() == 1
        assert process.stderr
        assert await process.stderr.read() == b""
    await until(lambda: _has_ended(server, "yes 63[.]5"))


async def _has_ended(server: RunningServer, pattern: str) -> bool:
    (agent,) = (await server.client(server.key()).get("/v0/agents")).json()["agents"]
    warden = server.roost.agents.registry.runtimes.get_warden(agent["agentId"])
    return (await warden.exec(["pgrep", "-f", pattern])).exit_code == 1


async def test_errors_have_exit_codes(server: RunningServer) -> None:
    async def fail(*arguments: str, **environment: Any) -> tuple[int | None, bytes]:
        code, _, err = await run(server, *arguments, **environment)
        return code, err

    code, err = await fail("--timeout", "1", "Ada", "sleep 60")
    assert (code, b"after 1 s" in err) == (124, True)
    code, err = await fail("--cwd", "/etc", "Ada", "true")
    assert (code, b"Error: Invalid command: " in err) == (2, True)
    assert (await fail("Eve", "true"))[0] == 5
    code, err = await fail("Ada", "true " + "x" * 60_000)
    assert (code, b"needs a script" in err) == (2, True)
