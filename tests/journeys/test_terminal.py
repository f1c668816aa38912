"""`roost shell` as a person uses it, with bash in a real container: full screen, jobs, a restart of the server."""

from contextlib import AbstractAsyncContextManager, AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from roost.drivers.engine.fake.driver import FakeEngine
from roost.drivers.runtime.bwrap.driver import BwrapRuntime
from tests.cli.pty_client import TerminalUser, run_on_pty
from tests.conformance.runtimes import is_foreground_job, sleeper, until
from tests.support.server import RunningServer, running

pytestmark = [pytest.mark.container, pytest.mark.timeout(200)]


def serve(folder: Path, **options: Any) -> AbstractAsyncContextManager[RunningServer]:
    engine = FakeEngine()
    runtime = BwrapRuntime(folder, lambda found: engine.folders(found.version), claims=folder.parent / "claims")
    return running(folder, runtime=runtime, engines=[engine], **options)


async def create_agent(server: RunningServer) -> None:
    answer = await server.client(server.key()).post("/v0/agents", json={"name": "Ada"})
    assert answer.status_code == 201, answer.text


def shell(server: RunningServer, columns: int = 80, rows: int = 24) -> AbstractAsyncContextManager[TerminalUser]:
    environment = {"ROOST_URL": f"http://127.0.0.1:{server.port}", "ROOST_TOKEN": server.key()}
    return run_on_pty("shell", "Ada", columns=columns, rows=rows, **environment)


async def test_a_session_in_the_shell_of_an_agent(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(serve(tmp_path / "data"))
        await create_agent(server)
        user = await stack.enter_async_context(shell(server, 100, 30))
        await user.find(rb"\$ ")
        user.type(b"echo $BASH_VERSION in $PWD as $(id -u) on $(tty)\r")
        await user.find(rb"\d+\.\d+\S* in /workspace as 1000 on /dev/pts/\d+\r\n")
        await _use_colours_and_the_full_screen(user)
        await _control_jobs(user)
        user.type(b"exit 9\r")
        assert await user.exit_code() == 9
        assert user.modes() == user.cooked


async def _use_colours_and_the_full_screen(user: TerminalUser) -> None:
    user.type(b"ls --color=always -d /workspace; tput colors\r")
    await user.find(rb"\x1b\[[\d;]*m/workspace\x1b\[0m\r\n256\r\n")
    user.type(b"tput smcup; tput cup 4 9; tput setaf 2; printf 'in %s' the-screen; tput sgr0; tput rmcup\r")
    await user.find(rb"\x1b\[\?1049h.*\x1b\[5;10H\x1b\[32min the-screen.*\x1b\[\?1049l")
    await user.resize_shell(132, 43)


async def _control_jobs(user: TerminalUser) -> None:
    duration = sleeper()
    user.type(b"sleep %s\r" % duration.encode())
    await until(lambda: is_foreground_job(duration))
    user.type(b"\x1a")
    await user.find(rb"\[1\]\+ +Stopped +sleep 1000")
    user.type(b"bg; jobs\r")
    await user.find(rb"\[1\]\+ +Running +sleep [\d.]+ &")
    user.type(b"fg\r")
    await user.find(rb"\rsleep [\d.]+\r\n")
    await until(lambda: is_foreground_job(duration))
    user.type(b"\x03")
    await user.find(rb"\^C")
    user.type(b"echo code=$?\r")
    await user.find(rb"code=130\r\n")


async def test_a_session_outlives_the_server(tmp_path: Path) -> None:
    async with AsyncExitStack() as person:
        async with serve(tmp_path / "data", stop=False) as server:
            await create_agent(server)
            user = await person.enter_async_context(shell(server))
            await user.find(rb"\$ ")
            user.type(b"mark=kept; echo re''ady\r")
            await user.find(rb"ready\r\n")
        await user.find(rb"connecting again")
        async with serve(tmp_path / "data", port=server.port):
            user.type(b"echo $mark\r")
            await user.find(rb"kept\r\n")
            user.type(b"exit\r")
            assert await user.exit_code() == 0
