"""Sandboxes without namespaces: each program is a process of the server's user that Landlock and seccomp confine.

Each has a supervisor (`confine.py`), which ends with the server. Decision 0062 says what they guarantee less than
those of bubblewrap.
"""

import asyncio
import hashlib
import marshal
import mimetypes
import os
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from roost.core.machine.unix_socket import Stream
from roost.drivers.runtime.bwrap.agent_paths import remove_tree
from roost.drivers.runtime.bwrap.launch import create_error_file, read_last_line
from roost.drivers.runtime.bwrap.record import HostProcess
from roost.drivers.runtime.bwrap.sandbox import SocketCommand, finish_start, library_folders, open_stream
from roost.drivers.runtime.bwrap.tools import running_interpreter
from roost.drivers.runtime.contract import ContainerLimits, RuntimeFailed
from roost.drivers.runtime.landlock import confine
from roost.drivers.runtime.landlock.seccomp_rules import compile_confinement
from roost.drivers.sandbox.contract import (
    COMMAND_FOLDER,
    SCRIPT_FOLDER,
    CommandProcess,
    Sandbox,
    SandboxCommand,
    SandboxProcess,
    SandboxProgram,
)

_START_SECONDS = 10.0
_END_SECONDS = 10.0
_PID_BYTES = 32
_SHELL = "/bin/sh"
_SYSTEM_FILES = ("/etc/ld.so.cache", *mimetypes.knownfiles)
"""Files that libraries read if they are there, and fail if they are refused."""
_DEVICES = ("/dev/null", "/dev/full", "/dev/random", "/dev/urandom")
"""Not /dev/zero: a mapping of it is shared memory, which the filter refuses."""
_ADDRESS_SPACE_FACTOR = 4
"""Address space of a process by its memory: libraries and threads reserve more than they use."""


class LandlockSandbox(Sandbox):
    """Sandboxes of one data folder."""

    def __init__(self, folder: Path, *, abi: int | None = None) -> None:
        """`abi` is a version of Landlock in the place of the kernel's."""
        self._tools = folder.resolve() / "tools"
        self._abi = confine.find_abi() if abi is None else abi

    async def start(self, program: SandboxProgram) -> SandboxProcess:
        return await finish_start(self._start(program))

    async def run(self, command: SandboxCommand) -> CommandProcess:
        return await finish_start(self._run(command))

    async def remove_folder(self, folder: Path) -> None:
        await asyncio.to_thread(remove_tree, folder)

    async def _start(self, program: SandboxProgram) -> SandboxProcess:
        ours, theirs = socket.socketpair()
        stream = await asyncio.open_unix_connection(sock=ours)
        with _closed_on_error(stream[1]), closing(theirs):
            confinement = await asyncio.to_thread(self._confine_program, program, theirs.fileno())
            process = await _launch(confinement, stream, None, theirs)
        with closing(process):
            try:
                async with asyncio.timeout(_START_SECONDS):
                    if await stream[0].read(1):
                        return process
            except OSError:  # includes TimeoutError
                pass
            reason = process.last_error_line()
            await process.kill()
            raise RuntimeFailed(f"The program of the sandbox ended: {reason}")

    async def _run(self, command: SandboxCommand) -> CommandProcess:
        (data, data_end), (control, control_end) = socket.socketpair(), socket.socketpair()
        connection = data.dup()  # a transport that fails to write would lose what it has not read yet
        stream, controls = await open_stream(data), await open_stream(control)
        with _closed_on_error(stream[1], controls[1], connection), closing(data_end), closing(control_end):
            confinement = await asyncio.to_thread(self._confine_command, command)
            process = await _launch(confinement, stream, control_end, data_end)
        return SocketCommand(process, connection, controls, process)

    def _confine_program(self, program: SandboxProgram, connection: int) -> "confine.Confinement":
        python, prefix = running_interpreter()
        folder = self._prepare_folder({"main.py": program.file.read_bytes()}, program.packages)
        rights = dict.fromkeys([folder, *program.packages.values()], confine.READABLE)
        rights |= dict.fromkeys([python, *library_folders(Path("/"), prefix)], confine.EXECUTABLE)
        arguments = [str(python), "-S", "-E", "-s", str(folder / "main.py"), str(connection)]
        return self._confinement(arguments, {}, folder, rights, program.limits, ends_orphans=True)

    def _confine_command(self, command: SandboxCommand) -> "confine.Confinement":
        command.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        scripts = self._prepare_folder(command.scripts, {})
        programs = [*library_folders(Path("/")), Path(_SHELL), scripts, *command.programs.values()]
        rights = dict.fromkeys(programs, confine.EXECUTABLE)
        rights |= dict.fromkeys(map(Path, _DEVICES), confine.DEVICE)
        rights[command.folder] = confine.WRITABLE if command.is_writable else confine.READABLE
        paths = {COMMAND_FOLDER: str(command.folder), SCRIPT_FOLDER: str(scripts)}
        environment = {name: paths.get(value, value) for name, value in command.environment.items()}
        arguments = [_SHELL, "-c", command.script, "sh", *command.arguments]
        return self._confinement(arguments, environment, command.folder, rights, command.limits)

    def _confinement(
        self,
        arguments: list[str],
        environment: Mapping[str, str],
        folder: Path,
        rights: Mapping[Path, int],
        limits: ContainerLimits,
        *,
        ends_orphans: bool = False,
    ) -> "confine.Confinement":
        """`ends_orphans` ends a program that left processes behind, if it cannot end them itself."""
        if self._abi < confine.OLDEST_ABI:
            raise RuntimeFailed(
                "The kernel cannot confine programs: sandboxes of the kind landlock need Linux 6.2 or newer, with "
                "landlock among the security modules (lsm=) and its system calls allowed by the container's seccomp "
                f"profile; found version {self._abi} of Landlock instead of {confine.OLDEST_ABI}"
            )
        denies_signals = self._abi < confine.SIGNALS_ABI
        allowed = {**rights, **dict.fromkeys(map(Path, _SYSTEM_FILES), confine.READABLE)}
        return {
            "abi": self._abi,
            "filter": compile_confinement(denies_signals=denies_signals),
            "arguments": arguments,
            "environment": dict(environment),
            "folder": str(folder),
            "rights": [(str(path), right) for path, right in allowed.items() if path.exists()],
            "limits": {
                resource.RLIMIT_CORE: 0,
                resource.RLIMIT_FSIZE: limits.file_bytes,
                resource.RLIMIT_NOFILE: limits.open_files,
                resource.RLIMIT_DATA: limits.memory_bytes,
                resource.RLIMIT_AS: _ADDRESS_SPACE_FACTOR * limits.memory_bytes,
                resource.RLIMIT_NICE: 0,
                resource.RLIMIT_RTPRIO: 0,
            },
            "memory_bytes": limits.memory_bytes,
            "threads": limits.pids,
            "ends_orphans": ends_orphans and denies_signals,
        }  # fmt: skip

    def _prepare_folder(self, files: Mapping[str, bytes], links: Mapping[str, Path]) -> Path:
        """Return a folder with this content, which is named by its digest and never changes."""
        digest = hashlib.sha256(repr((sorted(files.items()), sorted(links.items()))).encode()).hexdigest()
        target = self._tools / f"landlock-{digest[:16]}"
        if target.exists():
            return target
        self._tools.mkdir(mode=0o711, parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=self._tools, prefix="."))
        try:
            for name, content in files.items():
                (draft / name).write_bytes(content)
                (draft / name).chmod(0o755)
            for name, path in links.items():
                (draft / name).symlink_to(path.resolve())
            draft.rename(target)
        except OSError:
            if not target.exists():
                raise
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return target


class _LandlockProcess(SandboxProcess):
    """Confined process with its supervisor, which ends when `control` is closed."""

    def __init__(
        self, process: HostProcess, supervisor: subprocess.Popen[bytes], control: socket.socket, errors: int,
        stream: Stream,
    ) -> None:  # fmt: skip
        super().__init__(process.pid, *stream)
        self._process, self._supervisor, self._control, self._errors = process, supervisor, control, errors

    def is_alive(self) -> bool:
        return self._process.is_alive()

    def last_error_line(self) -> str:
        return read_last_line(self._errors)

    def close(self) -> None:
        """Close its standard error."""
        os.close(self._errors)

    async def kill(self) -> None:
        self.writer.close()
        is_new = self._supervisor.returncode is None
        if await _end_supervisor(self._supervisor, self._control) < 0 and is_new:  # it could not end the rest
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)


async def _launch(
    confinement: "confine.Confinement", stream: Stream, output: socket.socket | None, connection: socket.socket
) -> _LandlockProcess:
    """Start a command, with an `output` as that, or else with the connection as a further descriptor."""
    control, control_end = socket.socketpair()
    control.setblocking(False)
    errors = create_error_file()
    files = (subprocess.DEVNULL, subprocess.DEVNULL) if output is None else (connection.fileno(), output.fileno())
    inherited = [control_end.fileno(), *([connection.fileno()] if output is None else [])]
    try:
        with closing(control_end):
            supervisor = await asyncio.to_thread(_start_supervisor, inherited, files, errors)
        try:
            pid = await _send_confinement(control, confinement)
        except BaseException:
            await _end_supervisor(supervisor, control)
            raise
        if pid is None:
            await _end_supervisor(supervisor, control)
            raise RuntimeFailed(f"The sandbox could not be started: {read_last_line(errors)}")  # noqa: TRY301 - as above
    except BaseException:
        control.close()
        os.close(errors)
        raise
    return _LandlockProcess(HostProcess.find(pid) or HostProcess(pid, 0), supervisor, control, errors, stream)


async def _send_confinement(control: socket.socket, confinement: "confine.Confinement") -> int | None:
    """Return the pid of the command when it is confined, None if that failed."""
    loop, plain = asyncio.get_running_loop(), cast("Any", confinement)
    async with asyncio.timeout(_START_SECONDS):
        await loop.sock_sendall(control, marshal.dumps(plain))
        pid = await loop.sock_recv(control, _PID_BYTES)
    return int(pid) if pid else None


def _start_supervisor(inherited: list[int], files: tuple[int, int], errors: int) -> subprocess.Popen[bytes]:
    python, _ = running_interpreter()
    return subprocess.Popen(
        [python, "-S", "-E", "-I", confine.__file__, str(inherited[0])],
        pass_fds=inherited,
        stdin=files[0],
        stdout=files[1],
        stderr=errors,
        cwd="/",
        env={},
        start_new_session=True,
        umask=0o022,
    )


async def _end_supervisor(supervisor: subprocess.Popen[bytes], control: socket.socket) -> int:
    """End a supervisor with all that it confines, and return its status. Idempotent. Raises RuntimeFailed."""
    control.close()
    process = HostProcess.find(supervisor.pid) if supervisor.poll() is None else None
    if process and not await process.wait_until_gone(_END_SECONDS):
        raise RuntimeFailed("The sandbox does not end; a process may hang in the kernel")
    return supervisor.wait()


@contextmanager
def _closed_on_error(*connections: asyncio.StreamWriter | socket.socket) -> Generator[None]:
    """Close the connections if the block fails; raise RuntimeFailed for an OSError."""
    try:
        yield
    except BaseException as error:
        for connection in connections:
            connection.close()
        if isinstance(error, OSError):  # includes TimeoutError
            raise RuntimeFailed(f"The sandbox could not be started: {error or 'it did not answer in time'}") from error
        raise
