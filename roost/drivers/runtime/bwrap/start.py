"""Start of a container: folders, copies, bwrap, limits, record, network, and the warden's first answer.

The container is on record and in its control groups before anything in it runs. A failed start is cleaned up by the
caller.
"""

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import cache, partial
from os import geteuid
from pathlib import Path

from roost.core import clock, log
from roost.drivers.runtime.bwrap import cgroup, kernel, launch, plan, tools
from roost.drivers.runtime.bwrap.agent_paths import AgentPaths
from roost.drivers.runtime.bwrap.bind_stage import BindStage
from roost.drivers.runtime.bwrap.record import ContainerRecord, HostProcess, boot
from roost.drivers.runtime.contract import ContainerNotRunning, ContainerSpec, EngineVersion, RuntimeFailed, Stream
from roost.drivers.runtime.warden_client import WardenClient

_NETWORK_SECONDS = 5.0

EngineFolders = Callable[[EngineVersion], Mapping[str, Path]]
"""Finds the folders of an installed engine by their path in the container. Raises Problem."""

_log = log.get_logger("bwrap")

controllers = cache(cgroup.claim)
"""The control groups that this process may make, found once."""


def no_engine_folders(engine: EngineVersion) -> Mapping[str, Path]:
    raise RuntimeFailed(f"This runtime knows no engines, so it cannot find {engine.id} {engine.version}")


class ContainerStarter:
    """Starts the containers of one data folder, one at a time up to the moment when bwrap runs."""

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
        self._thread = ThreadPoolExecutor(1, "bwrap")  # bind_stage.py says why it is always the same

    def tools(self) -> tools.ContainerTools:
        return tools.prepare(self.tools_folder, self._bwrap, self._system_python)

    def groups(self, agent_id: str) -> list[Path]:
        """The control groups that a container of that agent has or would have."""
        return controllers().group_paths(self._group(agent_id))

    async def start(self, spec: ContainerSpec) -> ContainerRecord:
        """Raises OSError, TimeoutError and RuntimeFailed, with the container half made."""
        uid = await asyncio.to_thread(self._paths.prepare, spec.agent_id)
        launched = await self._launched(spec, uid)
        try:
            warden, monitor = HostProcess.find(await launched.child()), HostProcess.find(launched.monitor)
            if warden is None or monitor is None:
                raise RuntimeFailed(f"The container ended at once: {launched.last_error_line()}")
            await asyncio.to_thread(controllers().enter, self._group(spec.agent_id), (monitor.pid, warden.pid))
            if uid is None:
                launch.limit(warden.pid, spec.limits)
            made = ContainerRecord(
                spec.agent_id, boot(), warden, monitor, clock.utc_now(), tuple(self.groups(spec.agent_id))
            )
            made.save(self._paths.record(spec.agent_id))
            async with _prepared_network(warden.pid if spec.egress else None):
                launched.unblock()
                await self._answer(spec.agent_id, launched)
        finally:
            launched.close()
        return made

    async def _launched(self, spec: ContainerSpec, uid: int | None) -> launch.LaunchedBwrap:
        launching = asyncio.get_running_loop().run_in_executor(self._thread, self._launch, spec, uid)
        try:
            return await asyncio.shield(launching)
        except asyncio.CancelledError:
            # The thread goes on: what it starts has to be there before anybody looks for what is left.
            await asyncio.wait([launching])
            if not launching.exception():
                launching.result().close()
            raise

    def _launch(self, spec: ContainerSpec, uid: int | None) -> launch.LaunchedBwrap:
        found = self.tools()
        reach = Path.resolve if uid is None else self._stage.reach

        def ours(path: Path) -> Path:
            inside = path.relative_to(self._paths.folder)
            return reach(self._paths.folder / inside.parts[0]) / Path(*inside.parts[1:])

        folders = dict(self._engine_folders(spec.engine)) if spec.engine else {}
        if found.prefix:
            folders[str(found.prefix)] = found.prefix
        layout = plan.HostLayout(
            bwrap=ours(found.bwrap),
            warden=ours(found.warden),
            python=found.python,
            workspace=ours(self._paths.workspace(spec.agent_id)),
            home=ours(self._paths.home(spec.agent_id)),
            sockets=ours(self._paths.relays(spec.agent_id)),
            folders={target: reach(folder) for target, folder in folders.items()},
            system=plan.system(),
        )
        command = partial(plan.arguments, spec, layout, mark=self._paths.mark)
        group = self._group(spec.agent_id)
        controllers().create(group, spec.limits)
        with controllers().spawn_inside(group):
            return launch.launch(
                command, {**plan.ETC, **spec.files}, self._paths.socket(spec.agent_id), uid, spec.limits
            )

    async def _answer(self, agent_id: str, launched: launch.LaunchedBwrap) -> None:
        try:
            await WardenClient(partial(self._connect, agent_id)).ping()
        except ContainerNotRunning:
            raise RuntimeFailed(f"The container's warden ended: {launched.last_error_line()}") from None

    def _group(self, agent_id: str) -> str:
        return f"roost-{self._paths.mark[:8]}-{agent_id}"


@asynccontextmanager
async def _prepared_network(pid: int | None) -> AsyncGenerator[None, None]:
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
        if geteuid() == 0:
            with ThreadPoolExecutor(1) as pool:  # its thread stays in the container's network, so it does nothing else
                await asyncio.get_running_loop().run_in_executor(pool, kernel.prepare_network, pid)
        else:
            command = [sys.executable, "-S", "-E", "-I", kernel.__file__, str(pid)]
            await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True, timeout=_NETWORK_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        _log.warning("network.preparation_failed", reason=str(error))
