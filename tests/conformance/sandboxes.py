"""All kinds of sandboxes, and programs that run in them, for the suites of their contract and of their users."""

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from roost.drivers.runtime.bwrap.sandbox import BwrapSandbox
from roost.drivers.runtime.contract import ContainerLimits
from roost.drivers.runtime.landlock.confine import OLDEST_ABI
from roost.drivers.runtime.landlock.sandbox import LandlockSandbox
from roost.drivers.sandbox.contract import (
    COMMAND_FOLDER,
    SCRIPT_FOLDER,
    CommandProcess,
    Sandbox,
    SandboxCommand,
    SandboxProcess,
    SandboxProgram,
)
from tests.conformance.containers import PYTHON

MakeSandbox = Callable[[Path], Sandbox]
Run = Callable[[str], Awaitable[SandboxProcess]]
RunCommand = Callable[..., Awaitable[CommandProcess]]
Attack = Callable[..., Awaitable[Any]]

_MEMORY_BYTES, PROCESSES = 256 * 1024**2, 20
_PROGRAMS = {f"/bin/{name}": Path(f"/usr/bin/{name}") for name in ("cat", "ls", "sleep")}
REFUSED = {"EACCES", "EPERM", "ENOENT", "EROFS", "EXDEV", "ESRCH", "ENOTDIR"}
ATTEMPT = """
import ctypes, errno, json, os, resource, socket, sys, time
def attempt(call, *arguments, **options):
    try:
        return str(call(*arguments, **options))
    except OSError as error:
        return errno.errorcode[error.errno]
def tell(value):
    print(json.dumps(value), flush=True)
"""
READY = f"{ATTEMPT}\nserver = socket.socket(fileno=int(sys.argv[1]))\nserver.sendall(b'.')\n"


def bwrap(data: Path) -> Sandbox:
    return BwrapSandbox(data, claims=data / "claims")


def landlock(data: Path) -> Sandbox:
    return LandlockSandbox(data)


def old_landlock(data: Path) -> Sandbox:
    """Return sandboxes of the oldest kernel that has all they need; it cannot confine signals."""
    return LandlockSandbox(data, abi=OLDEST_ABI)


SANDBOXES = [
    pytest.param(make, id=make.__name__, marks=pytest.mark.container) for make in (bwrap, landlock, old_landlock)
]


@pytest.fixture(params=SANDBOXES)
def make(request: pytest.FixtureRequest) -> MakeSandbox:
    return request.param


@pytest.fixture
def sandbox(make: MakeSandbox, tmp_path: Path) -> Sandbox:
    return make(tmp_path / "data")


@pytest.fixture
async def run(sandbox: Sandbox, tmp_path: Path) -> AsyncIterator[Run]:
    """Run a program with the `server` it talks to."""
    running: list[SandboxProcess] = []

    async def start(program: str) -> SandboxProcess:
        file = tmp_path / "program.py"
        file.write_text(READY + program)
        package = tmp_path / "package"  # pytest's folder is closed to other users, as a home is
        package.mkdir(exist_ok=True)
        (package / "__init__.py").write_text("NAME = 'package'")
        limits = ContainerLimits(memory_bytes=_MEMORY_BYTES, pids=PROCESSES, open_files=30)
        running.append(await sandbox.start(SandboxProgram(file, {"package": package}, limits)))
        return running[-1]

    yield start
    for process in running:
        await process.kill()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of commands."""
    return tmp_path / "data/commands/a"


@pytest.fixture
async def command(sandbox: Sandbox, folder: Path) -> AsyncIterator[RunCommand]:
    """Run a script in the folder `a`."""
    running: list[CommandProcess] = []

    async def start(script: str, *arguments: str, is_writable: bool = True) -> CommandProcess:
        wanted = SandboxCommand(
            f"exec 3>&1 1>&0\n{script}", arguments, folder, is_writable,
            {**_PROGRAMS, "/bin/python3": Path(PYTHON).resolve()},
            {"PATH": "/usr/bin:/bin", "NAME": "value", "FOLDER": COMMAND_FOLDER, "SCRIPTS": SCRIPT_FOLDER},
            {"script": b"#!/bin/sh\necho from a script\n"},
            ContainerLimits(memory_bytes=_MEMORY_BYTES, pids=PROCESSES),
        )  # fmt: skip
        folder.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
        running.append(await sandbox.run(wanted))
        return running[-1]

    yield start
    for process in running:
        await process.kill()


@pytest.fixture
def attack(command: RunCommand) -> Attack:
    """Return what a Python program in a command passes to `tell`; `arguments` are its `sys.argv[1:]`."""

    async def run_attack(program: str, *arguments: object, is_writable: bool = True) -> Any:
        parts = [ATTEMPT + program, *map(str, arguments)]
        process = await command('exec python3 -I -S -c "$@"', *parts, is_writable=is_writable)
        answer = (await process.reader.read()).decode()
        return json.loads(answer) if answer else process.read_error()

    return run_attack


def find_processes(mark: str) -> Sequence[int]:
    """Return the processes of this machine with a mark in their command lines, except for this one."""
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark.encode() in (process / "cmdline").read_bytes() and process.name != str(os.getpid()):
                found.append(int(process.name))
    return found
