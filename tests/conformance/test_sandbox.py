"""The contract of sandboxes, tested from inside real ones."""

import json
import signal
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from roost.drivers.runtime.contract import RuntimeFailed
from roost.drivers.sandbox.contract import Sandbox, SandboxProgram
from tests.conformance.runtimes import until
from tests.conformance.sandboxes import (
    READY,
    REFUSED,
    MakeSandbox,
    Run,
    RunCommand,
    command,
    find_processes,
    folder,
    make,
    run,
    sandbox,
)

__all__ = ["command", "folder", "make", "run", "sandbox"]
_WAIT = "server.recv(1)"


async def test_a_program_sees_its_packages_and_nothing_of_the_host(run: Run, tmp_path: Path) -> None:
    program = """
import package
facts = {
    "package": package.NAME,
    "environment": dict(os.environ),
    "descriptors": [fd for fd in range(3, 10_000) if not attempt(os.fstat, fd).startswith("E")],
    "files": [attempt(open, path) for path in ("/etc/shadow", "/etc/passwd", "/proc/1/environ", "/dev/null", %r)],
    "folders": [attempt(os.listdir, path) for path in ("/usr/share", "/home", "/tmp", "/proc/self", %r)],
    "writes": [attempt(open, path + "/x", "w") for path in ("", sys.path[0], "/usr/lib", package.__path__[0])],
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
    assert not {"HOME", "PATH", "PYTHONPATH", "USER"} & set(facts["environment"])
    assert facts["package"] == "package"
    assert len(facts["descriptors"]) == 1
    assert {*facts["files"], *facts["folders"], *facts["writes"]} <= REFUSED
    assert {*facts["server"], facts["raw"]} <= {"ECONNREFUSED", "ENETUNREACH", "EAFNOSUPPORT"}


async def test_a_program_has_no_rights_and_limits(run: Run) -> None:
    process = await run(_WAIT)
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    seen = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    assert {int(seen[f"Cap{kind}"], 16) for kind in ("Inh", "Prm", "Eff", "Amb")} == {0}
    assert (seen["Seccomp"], seen["NoNewPrivs"]) == ("2", "1")
    limits = [line.split() for line in Path(f"/proc/{process.pid}/limits").read_text().splitlines()]
    assert ["Max", "open", "files", "30", "30"] in [line[:5] for line in limits]
    assert ["Max", "core", "file", "size", "0", "0"] in [line[:6] for line in limits]


async def test_a_program_that_ends_at_once_is_reported(sandbox: Sandbox, tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    for program, reason in (("import missing", "No module named 'missing'"), ("", "program of the sandbox ended")):
        file.write_text(program)
        with pytest.raises(RuntimeFailed, match=reason):
            await sandbox.start(SandboxProgram(file))


async def test_a_killed_program_is_gone(run: Run) -> None:
    process = await run("for _ in range(3): os.fork()\nwhile True: pass")
    await process.kill()
    await process.kill()
    assert not process.is_alive()


_SERVER = """
import asyncio, os, signal, sys
from pathlib import Path
from roost.drivers.sandbox.contract import SandboxCommand, SandboxProgram
from tests.conformance import sandboxes
async def run():
    sandbox, file, mark = getattr(sandboxes, sys.argv[1])(Path(sys.argv[2])), Path(sys.argv[3]), sys.argv[4]
    process = await sandbox.start(SandboxProgram(file))
    command = await sandbox.run(SandboxCommand(
        "exec 3>&1 1>&0; sleep 1000 & (sleep 1000; : $1) & echo; while :; do :; done",
        [mark], file.parent / "data/commands/a", True,
        {"/bin/sleep": Path("/usr/bin/sleep")}, {"PATH": "/usr/bin:/bin"},
    ))
    await command.reader.readline()
    print(process.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
asyncio.run(run())
"""


async def test_programs_and_commands_end_with_a_killed_server(make: MakeSandbox, tmp_path: Path) -> None:
    file, mark = tmp_path / "program.py", f"mark-{tmp_path.name}"
    file.write_text(READY + "while True: pass")
    (tmp_path / "data/commands").mkdir(mode=0o711, parents=True)
    arguments = [make.__name__, str(tmp_path / "data"), str(file), mark]
    command = [sys.executable, "-c", _SERVER, *arguments]
    result = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert result.returncode == -signal.SIGKILL, result.stderr
    await until(lambda: not Path(f"/proc/{int(result.stdout)}").exists() and not find_processes(mark), seconds=60)


async def test_a_command_sees_its_folder_and_nothing_of_the_host(command: RunCommand, folder: Path) -> None:
    process = await command(
        'echo "$1 $NAME $HOME"; [ "$(pwd)" = "$FOLDER" ] && echo home; $SCRIPTS/script; '
        "for path in /etc/passwd /proc/self/status /proc/1/environ; do cat $path; done; ls /home /tmp; "
        "echo new > file; cat $FOLDER/file; echo done >&3",
        "first",
    )
    lines = (await process.reader.read()).decode().split("\n")
    assert lines == ["first value ", "home", "from a script", "new", ""]
    assert await process.control[0].read() == b"done\n"
    assert (folder / "file").read_text() == "new\n"


async def test_a_folder_can_be_read_only(command: RunCommand, sandbox: Sandbox, folder: Path) -> None:
    await (await command("echo text > file; mkdir inner")).reader.read()
    process = await command(
        "cat file; for path in file new inner/x; do (echo other > $path); done; echo $? >&3", is_writable=False
    )
    assert await process.reader.read() == b"text\n"
    assert await process.control[0].read() != b"0\n"
    assert "cannot create inner/x" in process.read_error()
    assert (folder / "file").read_text() == "text\n"
    for _ in range(2):
        await sandbox.remove_folder(folder)
        assert not folder.exists()


async def test_output_is_read_to_the_end_though_input_is_left(command: RunCommand) -> None:
    process = await command("read -r line; echo $line; echo 7 >&3")
    await process.send(b"hello\n" + bytes(100_000))
    with pytest.raises(ConnectionError):
        await process.send(bytes(100 * 1024**2))
    assert await process.reader.read() == b"hello\n"
    assert await process.control[0].read() == b"7\n"
    process.send_eof()
