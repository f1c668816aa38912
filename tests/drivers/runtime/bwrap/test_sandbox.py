"""Sandboxes, tested from inside real ones."""

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from roost.drivers.runtime.bwrap import launch
from roost.drivers.runtime.bwrap.sandbox import BwrapSandbox
from roost.drivers.runtime.bwrap.start import get_controllers
from roost.drivers.runtime.contract import ContainerLimits, RuntimeFailed
from roost.drivers.sandbox.contract import CommandProcess, SandboxCommand, SandboxProcess, SandboxProgram
from tests.conformance.containers import AS_ROOT
from tests.conformance.runtimes import until

pytestmark = pytest.mark.container

Run = Callable[[str], Awaitable[SandboxProcess]]
RunCommand = Callable[..., Awaitable[CommandProcess]]

_READY = "import errno, json, os, socket, sys\nserver = socket.socket(fileno=int(sys.argv[1]))\nserver.sendall(b'.')\n"
_WAIT = "server.recv(1)"


@pytest.fixture
async def run(tmp_path: Path) -> AsyncIterator[Run]:
    """Run a program with the `server` it talks to."""
    sandbox, running = BwrapSandbox(tmp_path / "data"), list[SandboxProcess]()

    async def start(program: str) -> SandboxProcess:
        file = tmp_path / "program.py"
        file.write_text(_READY + program)
        package = tmp_path / "package"  # pytest's folder is closed to other users, as a home is
        package.mkdir(exist_ok=True)
        (package / "__init__.py").write_text("NAME = 'package'")
        limits = ContainerLimits(memory_bytes=256 * 1024**2, pids=20, open_files=30)
        running.append(await sandbox.start(SandboxProgram(file, {"package": package}, limits)))
        return running[-1]

    yield start
    for process in running:
        await process.kill()


def groups(tmp_path: Path) -> list[Path]:
    names = get_controllers().group_paths("x")
    mark = BwrapSandbox(tmp_path / "data")._paths.mark[:8]
    return [group for name in names for group in name.parent.glob(f"roost-sandbox-{mark}-*")]


def status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


async def test_a_program_sees_its_packages_and_nothing_of_the_host(run: Run, tmp_path: Path) -> None:
    program = """
import package
def attempt(call, *arguments):
    try:
        return str(call(*arguments))
    except OSError as error:
        return errno.errorcode[error.errno]
facts = {
    "package": package.NAME,
    "ids": [os.getresuid(), os.getresgid(), os.getgroups()],
    "pid": os.getpid(),
    "interfaces": socket.if_nameindex(),
    "environment": dict(os.environ),
    "files": [attempt(open, path) for path in ("/etc/shadow", "/etc/passwd", "/proc/self/environ", "/dev/null", %r)],
    "programs": [attempt(os.listdir, path) for path in ("/usr/sbin", "/usr/share", "/home", "/tmp", %r)],
    "writes": [attempt(open, path + "/x", "w") for path in ("", "/program", "/usr/lib", "/program/package")],
    "server": [attempt(socket.create_connection, address) for address in (("127.0.0.1", %d), ("192.0.2.1", 80))],
    "raw": attempt(socket.socket, socket.AF_VSOCK, socket.SOCK_STREAM),
}
server.sendall(json.dumps(facts).encode() + b"\\n")
server.recv(1)
"""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port = listener.getsockname()[1]
        process = await run(program % (str(tmp_path / "program.py"), str(tmp_path / "data"), port))
        facts: dict[str, Any] = json.loads(await process.reader.readline())
    environment = facts.pop("environment")
    assert not {"HOME", "PATH", "PYTHONPATH"} & set(environment)
    assert facts == {
        "package": "package",
        "ids": [[1000] * 3, [1000] * 3, []] if AS_ROOT else [[1000] * 3, [1000] * 3, facts["ids"][2]],
        "pid": 1,
        "interfaces": [[1, "lo"]],
        "files": ["ENOENT"] * 5,
        "programs": ["ENOENT"] * 5,
        "writes": ["EROFS"] * 4,
        "server": ["ECONNREFUSED", "ENETUNREACH"],
        "raw": "EAFNOSUPPORT",
    }


async def test_a_program_has_no_rights_and_limits(run: Run) -> None:
    process = await run(_WAIT)
    seen = status(process.pid)
    assert {int(seen[f"Cap{kind}"], 16) for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {0}
    assert (seen["Seccomp"], seen["NoNewPrivs"]) == ("2", "1")
    uid = int(seen["Uid"].split()[0])
    assert uid >= 60_600 if AS_ROOT else uid == os.getuid()
    limits = Path(f"/proc/{process.pid}/limits").read_text()
    assert any(line.split()[:5] == ["Max", "open", "files", "30", "30"] for line in limits.splitlines())


@pytest.mark.skipif("memory" in get_controllers().unavailable, reason="no control group for memory")
async def test_memory_is_limited(run: Run) -> None:
    process = await run("held = [bytearray(1024**2) for _ in range(1024)]\nserver.sendall(b'!')")
    assert await process.reader.read() == b""
    await until(lambda: not process.is_alive())


async def test_a_killed_program_leaves_nothing(run: Run, tmp_path: Path) -> None:
    process = await run("if not os.fork(): os.setsid()\nwhile True: pass")
    assert groups(tmp_path) or not get_controllers().usable
    await process.kill()
    await process.kill()
    assert not process.is_alive()
    assert not groups(tmp_path)


async def test_a_program_that_ends_at_once_is_reported(run: Run, tmp_path: Path) -> None:
    sandbox, file = BwrapSandbox(tmp_path / "data"), tmp_path / "wrong.py"
    for program, reason in (("import missing", "No module named 'missing'"), ("", "program of the sandbox ended")):
        file.write_text(program)
        with pytest.raises(RuntimeFailed, match=reason):
            await sandbox.start(SandboxProgram(file))
    assert not groups(tmp_path)


async def test_a_machine_without_bwrap_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(_READY + _WAIT)
    with pytest.raises(RuntimeFailed, match="bwrap is missing"):
        await BwrapSandbox(tmp_path / "data", bwrap=tmp_path / "none").start(SandboxProgram(file))


@pytest.fixture
async def command(tmp_path: Path) -> AsyncIterator[RunCommand]:
    """Run a script; `ls` and `id` are its programs."""
    sandbox, running = BwrapSandbox(tmp_path / "data", claims=tmp_path / "claims"), list[CommandProcess]()

    async def start(script: str, folder: str = "a", *, is_writable: bool = False) -> CommandProcess:
        programs = {f"/bin/{name}": Path(f"/usr/bin/{name}") for name in ("ls", "id", "cat")}
        scripts = {"script": b"#!/bin/sh\necho from a script\n"}
        wanted = SandboxCommand(
            f"exec 3>&1 1>&0\n{script}", ["first"], tmp_path / "data/commands" / folder, is_writable, programs,
            {"PATH": "/bin", "NAME": "value"}, scripts, ContainerLimits(memory_bytes=256 * 1024**2, pids=20),
        )  # fmt: skip
        (tmp_path / "data/commands").mkdir(mode=0o711, parents=True, exist_ok=True)
        running.append(await sandbox.run(wanted))
        return running[-1]

    yield start
    for process in running:
        await process.kill()


async def test_a_command_sees_its_folder_and_nothing_of_the_host(command: RunCommand, tmp_path: Path) -> None:
    process = await command(
        'pwd; id -u; echo "$1 $NAME $HOME"; ls -A / /bin /usr; /scripts/script; cat /proc/self/status /etc/passwd; '
        "touch x; echo new > file; cat file; echo done >&3",
        is_writable=True,
    )
    lines = (await process.reader.read()).decode().split("\n")
    libraries = {name for name in ("lib", "lib32", "lib64") if Path("/usr", name).is_dir()}
    assert lines[:3] == ["/folder", "1000", "first value "]
    entries = set(lines[3:-3])
    assert {"cat", "id", "ls", "sh", "folder", "scripts", "dev"} <= entries
    assert not {"home", "root", "tmp", "proc", "bash", "python3", "share"} & entries, libraries
    assert lines[-3:] == ["from a script", "new", ""]
    assert await process.control[0].read() == b"done\n"
    owner = (tmp_path / "data/commands/a/file").stat().st_uid
    assert owner >= 60_600 if AS_ROOT else owner == os.getuid()


async def test_folders_of_commands_have_users_of_their_own(command: RunCommand, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        process = await command("echo text > file; echo $? >&3", folder, is_writable=True)
        assert await process.control[0].read() == b"0\n"
    read_only = await command("echo other > file; echo $? >&3; cat file", "a")
    assert await read_only.reader.read() == b"text\n"
    assert await read_only.control[0].read() != b"0\n"
    assert "Read-only file system" in read_only.read_error()
    folders = [tmp_path / "data/commands" / name for name in ("a", "b")]
    assert len({folder.stat().st_uid for folder in folders}) == (2 if AS_ROOT else 1)
    sandbox = BwrapSandbox(tmp_path / "data", claims=tmp_path / "claims")
    for folder in folders * 2:
        await sandbox.remove_folder(folder)
        assert not folder.exists()
    assert not list((tmp_path / "claims").glob("*"))


async def test_a_killed_command_leaves_nothing(command: RunCommand, tmp_path: Path) -> None:
    process = await command("(while :; do :; done) & while :; do :; done")
    await process.kill()
    await process.kill()
    assert not groups(tmp_path)
    assert process.read_error() == ""


async def test_a_cancelled_start_leaves_nothing(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(_READY + _WAIT)
    sandbox = BwrapSandbox(tmp_path / "data")
    for begun in (lambda: groups(tmp_path) or launch._children, lambda: launch._children):
        starting = asyncio.create_task(sandbox.start(SandboxProgram(file)))
        await until(begun)
        assert not starting.done()
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        assert not groups(tmp_path)
        assert not launch._children
