"""Sandboxes by Landlock: their supervisors, and kernels that cannot confine; their contract has a suite of its own."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from roost.app.drivers import create_sandbox
from roost.config import load_settings
from roost.drivers.runtime.bwrap.sandbox import BwrapSandbox
from roost.drivers.runtime.contract import RuntimeFailed
from roost.drivers.runtime.landlock.sandbox import LandlockSandbox
from roost.drivers.sandbox.contract import SandboxCommand, SandboxProgram
from tests.conformance.runtimes import until
from tests.conformance.sandboxes import READY, find_processes

pytestmark = pytest.mark.container


def command(tmp_path: Path, script: str, *arguments: str) -> SandboxCommand:
    folder, programs = tmp_path / "data/a", {"/bin/sleep": Path("/usr/bin/sleep")}
    return SandboxCommand(f"exec 3>&1 1>&0\n{script}", arguments, folder, True, programs, {"PATH": "/usr/bin:/bin"})


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


async def test_a_kernel_without_landlock_starts_nothing(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(READY)
    for abi in (0, 2):
        sandbox = LandlockSandbox(tmp_path / "data", abi=abi)
        for start in (
            sandbox.start(SandboxProgram(tmp_path / "program.py")),
            sandbox.run(command(tmp_path, "echo > ran")),
        ):
            with pytest.raises(RuntimeFailed, match=r"need Linux 6\.2 or newer, .* found version \d of Landlock"):
                await start
    assert not (tmp_path / "data/a/ran").exists()


async def test_a_command_that_cannot_be_confined_does_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox, wanted = LandlockSandbox(tmp_path / "data"), command(tmp_path, "echo > ran")
    confinement = sandbox._confine_command(wanted)
    confinement["rights"] = [*confinement["rights"], ("/missing", 4)]
    monkeypatch.setattr(sandbox, "_confine_command", lambda _: confinement)
    with pytest.raises(RuntimeFailed, match="could not be started: FileNotFoundError"):
        await sandbox.run(wanted)
    assert not (tmp_path / "data/a/ran").exists()


async def test_processes_end_with_a_killed_supervisor(tmp_path: Path) -> None:
    mark = f"mark-{tmp_path.name}"
    process = await LandlockSandbox(tmp_path / "data").run(
        command(tmp_path, "(while :; do :; done) & echo $$; while :; do :; done", mark)
    )
    main = int(await process.reader.readline())
    os.kill(parent_of(main), signal.SIGKILL)
    await until(lambda: main not in find_processes(mark), seconds=60)
    await process.kill()
    await until(lambda: not find_processes(mark), seconds=60)


async def test_a_program_that_leaves_processes_is_ended_where_it_cannot_end_them(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        f"{READY}server.recv(1)\n"
        "if os.fork() == 0:\n    if os.fork() == 0: time.sleep(1000)\n    os._exit(0)\n"
        "server.recv(1)"
    )
    process = await LandlockSandbox(tmp_path / "data", abi=5).start(SandboxProgram(tmp_path / "program.py"))
    assert process.is_alive()
    process.writer.write(b"x")
    await until(lambda: not process.is_alive(), seconds=60)
    await process.kill()


async def test_a_cancelled_start_leaves_nothing(tmp_path: Path) -> None:
    mark = f"mark-{tmp_path.name}"
    sandbox = LandlockSandbox(tmp_path / "data")
    for turns in (1, 3, 10):
        starting = asyncio.create_task(sandbox.run(command(tmp_path, "sleep 1000", mark)))
        for _ in range(turns):
            await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert not find_processes(mark)


async def test_a_command_opens_no_device_whose_mapping_is_shared_memory(tmp_path: Path) -> None:
    script = "for name in zero null urandom; do (: < /dev/$name) 2> /dev/null && echo $name; done"
    process = await LandlockSandbox(tmp_path / "data").run(command(tmp_path, script))
    assert await process.reader.read() == b"null\nurandom\n"
    await process.kill()


def test_the_setting_selects_the_kind(tmp_path: Path) -> None:
    for kind, made in (("bwrap", BwrapSandbox), ("landlock", LandlockSandbox)):
        settings = load_settings({"ROOST_DATA": str(tmp_path), "ROOST_SANDBOX": kind})
        assert isinstance(create_sandbox(settings), made)
