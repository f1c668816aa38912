"""Start of a container: folders, tools, bwrap, limits, record, network, and the warden's first reply.

The container has a record and is in its control groups before anything in it runs. The caller cleans up after a failed
start.
"""

import asyncio
import hashlib
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager, closing, suppress
from functools import cache, partial
from pathlib import Path

from roost.core import clock, log
from roost.core.machine import process_priority, unix_socket
from roost.core.machine.process_priority import ProcessPriority
from roost.drivers.runtime.bwrap import cgroup, kernel, launch, plan, tools
from roost.drivers.runtime.bwrap.agent_paths import AgentPaths
from roost.drivers.runtime.bwrap.record import ContainerRecord, HostProcess, boot_id
from roost.drivers.runtime.contract import ContainerSpec, EngineVersion, RuntimeFailed, Stream
from roost.warden_client.client import WardenClient
from roost.warden_client.errors import ContainerNotRunning

_NETWORK_SECONDS = 5.0
_AGENT_OOM_SCORE = 500
_NICE_WITHOUT_WEIGHTS = 10

EngineFolders = Callable[[EngineVersion], Mapping[str, Path]]
"""Returns the folders of an installed engine by their path in the container. Raises Problem."""

_log = log.get_logger("bwrap")

get_controllers = cache(cgroup.find_controllers)
"""Return the controllers that this process may use, found once."""


def no_engine_folders(engine: EngineVersion) -> Mapping[str, Path]:
    raise RuntimeFailed(f"This runtime has no engines, so it cannot find {engine.id} {engine.version}")


class ContainerStarter:
    """Starts the containers of one data folder, launching one bwrap at a time."""

    def __init__(
        self,
        paths: AgentPaths,
        connect: Callable[[str], Awaitable[Stream]],
        engine_folders: EngineFolders,
        bwrap: Path | None,
        system_python: Path,
    ) -> None:
        self._paths = paths
        self._connect = connect
        self._engine_folders = engine_folders
        self._bwrap = bwrap
        self._system_python = system_python
        self.tools_folder = paths.tools
        self._stage = BindStage()
        self._thread = ThreadPoolExecutor(1, "bwrap")  # always the same thread, because of BindStage

    def prepare_tools(self) -> tools.ContainerTools:
        return tools.prepare_tools(self.tools_folder, self._bwrap, self._system_python)

    def control_groups(self, agent_id: str) -> list[Path]:
        """Return the control groups of the agent's container, existing or not."""
        return get_controllers().group_paths(self.group_name(agent_id))

    async def start(self, spec: ContainerSpec) -> ContainerRecord:
        """Start a container. Raises OSError, TimeoutError and RuntimeFailed, and leaves its remains to the caller."""
        uid = await asyncio.to_thread(self._paths.prepare, spec.agent_id)
        launched = await launch_in_thread(self._thread, partial(self._launch, spec, uid))
        try:
            group = self.group_name(spec.agent_id)
            nice = _NICE_WITHOUT_WEIGHTS if get_controllers().weights_problem else 0
            priority = ProcessPriority(nice, 7, _AGENT_OOM_SCORE)  # of the warden, which starts programs below it
            warden, monitor = await confine_container(launched, group, priority)
            record = ContainerRecord(
                spec.agent_id,
                boot_id(),
                warden,
                monitor,
                clock.utc_now(),
                tuple(self.control_groups(spec.agent_id)),
                self._paths.mark,
                spec.delete_only,
            )
            record.save(self._paths.record(spec.agent_id))
            async with _prepared_network(warden.pid if spec.egress else None):
                launched.unblock()
                await self._wait_for_warden(spec.agent_id, launched)
        finally:
            launched.close()
        return record

    def _launch(self, spec: ContainerSpec, uid: int | None) -> launch.LaunchedBwrap:
        copies = self.prepare_tools()
        accessible = cache(Path.resolve if uid is None else self._stage.accessible_path)

        def accessible_data(path: Path) -> Path:
            first, *rest = path.relative_to(self._paths.folder).parts
            return accessible(self._paths.folder / first).joinpath(*rest)

        folders = dict(self._engine_folders(spec.engine)) if spec.engine else {}
        if copies.prefix:
            folders[str(copies.prefix)] = copies.prefix
        etc, etc_folders = tools.prepare_etc(self.tools_folder)
        layout = plan.HostLayout(
            bwrap=accessible_data(copies.bwrap),
            warden=accessible_data(copies.warden),
            python=copies.python,
            workspace=accessible_data(self._paths.workspace(spec.agent_id)),
            home=accessible_data(self._paths.home(spec.agent_id)),
            sockets=accessible_data(self._paths.relays(spec.agent_id)),
            etc=accessible_data(etc),
            etc_folders=etc_folders,
            folders={target: accessible(folder) for target, folder in folders.items()},
            system_mounts=plan.system_folders(),
            lowers_sessions=has_autogroup_only(),
        )
        arguments = partial(plan.bwrap_arguments, spec, layout, mark=self._paths.mark)
        group = self.group_name(spec.agent_id)
        get_controllers().create(group, spec.limits)
        socket = unix_socket.listen_unix(self._paths.socket(spec.agent_id))
        with closing(socket), get_controllers().spawn_inside(group):
            return launch.launch_bwrap(arguments, spec.files, socket.fileno(), uid, spec.limits)

    async def _wait_for_warden(self, agent_id: str, launched: launch.LaunchedBwrap) -> None:
        try:
            await WardenClient(partial(self._connect, agent_id)).ping()
        except ContainerNotRunning:
            if reason := launched.last_error_line():
                raise RuntimeFailed(f"The container's warden ended: {reason}") from None
            raise  # it was killed

    def group_name(self, agent_id: str) -> str:
        """Return the name of the control group of the agent's container."""
        return f"{cgroup.AGENTS}/roost-{self._paths.mark[:8]}-{agent_id}"


async def launch_in_thread(thread: Executor, launch_one: Callable[[], launch.LaunchedBwrap]) -> launch.LaunchedBwrap:
    """Launch in a thread, and close what it launched if the caller is cancelled. Raises OSError and RuntimeFailed."""
    launching = asyncio.get_running_loop().run_in_executor(thread, launch_one)
    try:
        return await asyncio.shield(launching)
    except asyncio.CancelledError:
        # The thread keeps running, so wait until its container exists and can be cleaned up.
        await asyncio.wait([launching])
        if not launching.exception():
            launching.result().close()
        raise


def has_autogroup_only() -> bool:
    """Return whether each session of an agent competes with the whole server, for lack of weights."""
    return get_controllers().weights_problem is not None and process_priority.has_autogroup()


async def confine_container(
    launched: launch.LaunchedBwrap, group: str, priority: ProcessPriority
) -> tuple[HostProcess, HostProcess]:
    """Apply group, limits and priority to a launched container; return pid 1 and monitor. Raises RuntimeFailed."""
    child, monitor = HostProcess.find(await launched.wait_for_child_pid()), HostProcess.find(launched.monitor)
    if child is None or monitor is None:
        raise RuntimeFailed(f"The container ended at once: {launched.last_error_line()}")
    await asyncio.to_thread(_confine, launched, group, priority, (child.pid, monitor.pid))
    return child, monitor


def _confine(launched: launch.LaunchedBwrap, group: str, priority: ProcessPriority, pids: tuple[int, int]) -> None:
    get_controllers().move_processes(group, pids)
    launch.set_limits(pids[0], launched.limits, launched.uid)
    for pid in pids:
        process_priority.set_priority(pid, priority)


@asynccontextmanager
async def _prepared_network(pid: int | None) -> AsyncGenerator[None]:
    """Prepare the network of a container while it starts; the warden retries to bind the low ports meanwhile.

    A failure only cuts off programs that ignore the proxy variables; `probe` reports it.
    """
    if pid is None:
        yield
        return
    preparing = asyncio.create_task(_prepare_network(pid))
    try:
        yield
        await preparing
    except BaseException:
        preparing.cancel()
        with suppress(asyncio.CancelledError):
            await preparing
        raise


async def _prepare_network(pid: int) -> None:
    try:
        if os.geteuid() == 0:
            with ThreadPoolExecutor(1) as pool:  # its thread stays in the container's network, so it does nothing else
                await asyncio.get_running_loop().run_in_executor(pool, kernel.prepare_network, pid)
        else:
            command = [sys.executable, "-S", "-E", "-I", kernel.__file__, str(pid)]
            await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True, timeout=_NETWORK_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        _log.warning("network.preparation_failed", reason=str(error))


class BindStage:
    """Bind mounts that give an agent's uid access to folders below closed ones, such as an engine under a 0700 home.

    Used by root only, because only root has agents of other uids. The calling thread enters its own mount namespace and
    binds the folders below `/run/roost-stage`, which only this thread and its children see; the host's mounts and modes
    do not change. All containers must therefore be started from one thread, which does nothing else.
    """

    def __init__(self, root: Path = Path("/run/roost-stage")) -> None:
        self._root = root
        self._ready = False

    def accessible_path(self, path: Path) -> Path:
        """Return `path` if every user can reach it, or else a bind mount of it. Raises RuntimeFailed."""
        path = path.resolve()
        if is_reachable(path):
            return path
        try:
            return self._bind(path)
        except OSError as error:
            raise RuntimeFailed(
                f"{path} is in a folder that users of agents may not enter, and it cannot be mounted elsewhere "
                f"({error.strerror}). Use a folder that others may pass through (chmod o+x)."
            ) from error

    def _bind(self, path: Path) -> Path:
        if not self._ready:
            self._root.mkdir(mode=0o755, parents=True, exist_ok=True)
            kernel.unshare_mounts()
            kernel.mount_tmpfs(self._root)
            self._ready = True
        target = self._root / hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
        if target.exists():
            if target.samefile(path):
                return target
            kernel.detach_mount(target)  # the folder was replaced: an engine that was installed again
        elif path.is_dir():
            target.mkdir(mode=0o755)
        else:
            target.touch(mode=0o644)
        kernel.bind_mount(path, target)
        return target


def is_reachable(path: Path) -> bool:
    """Return whether every user may pass through all folders above `path`."""
    return all(folder.stat().st_mode & 0o001 for folder in path.parents)
