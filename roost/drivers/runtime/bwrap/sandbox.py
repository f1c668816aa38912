"""Sandboxes by bubblewrap: isolated as the containers of agents are, without a warden, a workspace or system files."""

import asyncio
import os
import socket
from collections.abc import AsyncGenerator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Protocol, TypeVar

from roost.core.machine.process_priority import ProcessPriority
from roost.core.machine.unix_socket import Stream
from roost.drivers.runtime.bwrap import cgroup, launch, plan, tools
from roost.drivers.runtime.bwrap.agent_paths import AgentPaths, HostUsers, remove_tree
from roost.drivers.runtime.bwrap.record import HostProcess
from roost.drivers.runtime.bwrap.start import BindStage, confine_container, get_controllers, launch_in_thread
from roost.drivers.runtime.contract import RuntimeFailed
from roost.drivers.sandbox.contract import (
    SCRIPT_FOLDER,
    CommandProcess,
    Sandbox,
    SandboxCommand,
    SandboxProcess,
    SandboxProgram,
)

_START_SECONDS = 10.0
_END_SECONDS = 10.0
_STREAM_BYTES = 1024**2
_SHELL = "/bin/sh"
_PRIORITY = ProcessPriority(nice=0, io_level=4, oom_score=300)
"""Between the server and its agents, because requests wait for sandboxes."""

_numbers = count()


class BwrapSandbox(Sandbox):
    """Sandboxes of one data folder; they end with this object, because the kernel ends them with its thread."""

    def __init__(self, folder: Path, *, bwrap: Path | None = None, claims: Path | None = None) -> None:
        self._paths = AgentPaths(folder)
        self._users = HostUsers(claims)
        self._bwrap = bwrap
        self._stage = BindStage()
        self._thread = ThreadPoolExecutor(1, "sandbox")  # always the same thread, because of BindStage

    async def start(self, program: SandboxProgram) -> SandboxProcess:
        return await finish_start(self._start(program))

    async def run(self, command: SandboxCommand) -> CommandProcess:
        return await finish_start(self._run(command))

    async def remove_folder(self, folder: Path) -> None:
        await asyncio.to_thread(self._remove, folder)

    def _remove(self, folder: Path) -> None:
        self._users.release_uid(folder)
        remove_tree(folder)

    async def _start(self, program: SandboxProgram) -> SandboxProcess:
        group = self._new_group()
        ours, theirs = socket.socketpair()
        stream = await asyncio.open_unix_connection(sock=ours)
        async with _cleaned_up(group, stream[1]):
            with closing(theirs):
                uid = await asyncio.to_thread(self._users.prepare_owner, self._paths.folder / "sandbox")
                launched = await launch_in_thread(self._thread, partial(self._launch, program, group, theirs, uid))
            with closing(launched):
                return await _await_ready(launched, group, stream)

    async def _run(self, command: SandboxCommand) -> CommandProcess:
        group = self._new_group()
        (data, data_end), (control, control_end) = socket.socketpair(), socket.socketpair()
        connection = data.dup()  # a transport that fails to write would lose what it has not read yet
        stream, controls = await open_stream(data), await open_stream(control)
        async with _cleaned_up(group, stream[1], controls[1], connection):
            with closing(data_end), closing(control_end):
                uid = await asyncio.to_thread(self._users.prepare_owner, command.folder)
                launch_one = partial(self._launch_command, command, group, data_end, control_end, uid)
                launched = await launch_in_thread(self._thread, launch_one)
            try:
                child, monitor = await _confine(launched, group)
            except BaseException:
                launched.close()
                raise
            return SocketCommand(_BwrapProcess(child, monitor, group, stream), connection, controls, launched)

    def _new_group(self) -> str:
        return f"roost-sandbox-{self._paths.mark[:8]}-{os.getpid()}-{next(_numbers)}"

    def _launch(
        self, program: SandboxProgram, group: str, connection: socket.socket, uid: int | None
    ) -> launch.LaunchedBwrap:
        python, prefix = tools.running_interpreter()
        accessible = self._accessible_path(uid)
        folders = {str(folder): accessible(folder) for folder in (python, *library_folders(prefix))}
        main = Path(plan.SANDBOX_PROGRAM)
        folders |= {str(main.with_name(name)): accessible(folder) for name, folder in program.packages.items()}
        arguments = partial(plan.sandbox_arguments, self._prepare_bwrap(uid), python, folders)
        files = {str(main): program.file.read_bytes()}
        get_controllers().create(group, program.limits, cgroup.SANDBOX_WEIGHT)
        with get_controllers().spawn_inside(group):
            return launch.launch_bwrap(arguments, files, connection.fileno(), uid, program.limits)

    def _launch_command(
        self, command: SandboxCommand, group: str, data: socket.socket, control: socket.socket, uid: int | None
    ) -> launch.LaunchedBwrap:
        accessible = self._accessible_path(uid)
        sources = {**command.programs, _SHELL: Path(_SHELL).resolve()}
        programs = {str(folder): accessible(folder) for folder in library_folders()}
        programs |= {target: accessible(source) for target, source in sources.items()}
        scripts = {f"{SCRIPT_FOLDER}/{name}": content for name, content in command.scripts.items()}
        folder = accessible(command.folder.parent) / command.folder.name  # one bind mount for all folders of a kind
        arguments = partial(plan.command_arguments, self._prepare_bwrap(uid), command, programs, folder)
        get_controllers().create(group, command.limits, cgroup.SANDBOX_WEIGHT)
        with get_controllers().spawn_inside(group):
            return launch.launch_bwrap(arguments, scripts, data.fileno(), uid, command.limits, output=control.fileno())

    def _accessible_path(self, uid: int | None) -> Callable[[Path], Path]:
        return Path.resolve if uid is None else self._stage.accessible_path

    def _prepare_bwrap(self, uid: int | None) -> Path:
        bwrap = tools.prepare_tools(self._paths.tools, self._bwrap).bwrap
        return self._accessible_path(uid)(self._paths.tools) / bwrap.relative_to(self._paths.tools)


class _BwrapProcess(SandboxProcess):
    def __init__(self, child: HostProcess, monitor: HostProcess, group: str, stream: Stream) -> None:
        super().__init__(child.pid, *stream)
        self._child, self._monitor = child, monitor
        self._group = group

    def is_alive(self) -> bool:
        return self._child.is_alive()

    async def kill(self) -> None:
        self.writer.close()
        for process in (self._child, self._monitor):
            process.kill()
            if not await process.wait_until_gone(_END_SECONDS):
                raise RuntimeFailed("The sandbox does not end; a process may hang in the kernel")
        launch.reap_monitors()
        await cgroup.remove_ended_groups(get_controllers().group_paths(self._group))


class LaunchedProcess(Protocol):
    def last_error_line(self) -> str: ...
    def close(self) -> None: ...


class SocketCommand(CommandProcess):
    """Command that talks over sockets; `connection` is another descriptor of the process's own."""

    def __init__(
        self, process: SandboxProcess, connection: socket.socket, control: Stream, launched: LaunchedProcess
    ) -> None:
        self._process = process
        self._connection = connection
        self.reader = process.reader
        self.control = control
        self._launched: LaunchedProcess | None = launched
        connection.setblocking(False)

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self._connection, data)

    def send_eof(self) -> None:
        with suppress(OSError):  # it has ended
            self._connection.shutdown(socket.SHUT_WR)

    def read_error(self) -> str:
        return self._launched.last_error_line() if self._launched else ""

    async def kill(self) -> None:
        if self._launched:
            self._launched.close()
            self._launched = None
            self._connection.close()
            self.control[1].close()
        await self._process.kill()


class _OutputProtocol(asyncio.StreamReaderProtocol):
    """Protocol for which a peer that ended without reading everything has just ended: what it wrote can be read."""

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(None if isinstance(exc, ConnectionResetError) else exc)


async def open_stream(connection: socket.socket) -> Stream:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=_STREAM_BYTES, loop=loop)
    transport, protocol = await loop.create_unix_connection(lambda: _OutputProtocol(reader, loop=loop), sock=connection)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


_P = TypeVar("_P", SandboxProcess, CommandProcess)


async def finish_start(start: Coroutine[Any, Any, _P]) -> _P:
    """Await a start; one that is cancelled is completed and then undone, because what it started is known then only."""
    starting = asyncio.create_task(start)
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:
        with suppress(RuntimeFailed):
            await (await starting).kill()
        raise


@asynccontextmanager
async def _cleaned_up(group: str, *connections: asyncio.StreamWriter | socket.socket) -> AsyncGenerator[None]:
    """Close the connections and remove the group if the block fails; raise RuntimeFailed for an OSError."""
    try:
        yield
    except (OSError, RuntimeFailed) as error:
        for connection in connections:
            connection.close()
        await cgroup.remove_ended_groups(get_controllers().group_paths(group))
        if isinstance(error, OSError):  # includes TimeoutError
            raise RuntimeFailed(f"The sandbox could not be started: {error or 'it did not answer in time'}") from error
        raise


async def _confine(launched: launch.LaunchedBwrap, group: str) -> tuple[HostProcess, HostProcess]:
    """Confine what was launched and let it begin, within the time of a start."""
    try:
        async with asyncio.timeout(_START_SECONDS):
            processes = await confine_container(launched, group, _PRIORITY)
            launched.unblock()
            return processes
    except (OSError, RuntimeFailed):
        await _end_monitor(launched.monitor)
        raise


async def _await_ready(launched: launch.LaunchedBwrap, group: str, stream: Stream) -> SandboxProcess:
    child, monitor = await _confine(launched, group)
    try:
        async with asyncio.timeout(_START_SECONDS):
            if await stream[0].read(1):
                return _BwrapProcess(child, monitor, group, stream)
            raise RuntimeFailed(f"The program of the sandbox ended: {launched.last_error_line()}")  # noqa: TRY301 - below
    except (OSError, RuntimeFailed):
        await _end_monitor(launched.monitor)
        raise


async def _end_monitor(pid: int) -> None:
    """End a monitor, whose child ends with it."""
    if monitor := HostProcess.find(pid):
        monitor.kill()
        await monitor.wait_until_gone(_END_SECONDS)
    launch.reap_monitors()


def library_folders(*prefixes: Path) -> list[Path]:
    """Return the folders of libraries of the system, and those below other prefixes."""
    folders = (base / name for base in dict.fromkeys((Path("/usr"), *prefixes)) for name in ("lib", "lib64", "lib32"))
    return [folder for folder in folders if folder.is_dir()]
