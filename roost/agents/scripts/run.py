"""One run of an agent's scripts: the build to its end, then the start script, each step noted as it is taken."""

from collections.abc import Mapping
from datetime import timedelta

from roost.agents.registry.errors import AgentNotFound
from roost.agents.scripts import manifest, store
from roost.agents.scripts.model import (
    BUILD,
    PROCESSES,
    START,
    STOP_GRACE,
    TIMED_OUT,
    ScriptState,
    ScriptStatus,
)
from roost.core import clock
from roost.core.periodic import Backoff
from roost.drivers.runtime.warden_client import ProcessStatus, WardenClient
from roost.work import ClaimedOperation

_FIRST_WAIT, _LONGEST_WAIT = 0.02, 1.0


class ScriptRun:
    """Raises AgentGone, LeaseLost, and what the warden raises."""

    def __init__(self, operation: ClaimedOperation, agent_id: str, warden: WardenClient, build_seconds: float) -> None:
        self.warden = warden
        self._operation = operation
        self._agent_id = agent_id
        self._build_seconds = build_seconds

    async def all(self, scripts: manifest.ManifestScripts, env: Mapping[str, str], *, anew: bool) -> None:
        """`anew`: build also what was built from this manifest before."""
        noted = await self._operation.db.read(lambda connection: store.of_agent(connection, self._agent_id))
        build = noted.get(BUILD, ScriptStatus())
        done = build.state is ScriptState.SUCCESS and build.digest == scripts.digest and not anew
        if await self._ours(START) is None:
            await self.warden.stop(PROCESSES[START], STOP_GRACE)
            await self._note(START, ScriptStatus(ScriptState.PENDING) if scripts.start else ScriptStatus())
        if scripts.build is None:
            await self._note(BUILD, ScriptStatus())
        elif not done and not await self._build(scripts.build, env, scripts.digest):
            await self._note_start_failed("It was not started, because the build failed", scripts)
            return
        if scripts.start is not None:
            await self._start(scripts.start, env)

    async def fail(self, reason: str) -> None:
        """Neither can run; what runs of them is ended."""
        for name, process in PROCESSES.items():
            await self.warden.stop(process, STOP_GRACE)
            await self._note(name, ScriptStatus(ScriptState.FAILED, reason, finished_at=clock.utc_now()))

    async def _build(self, command: str, env: Mapping[str, str], digest: str) -> bool:
        process = await self._ours(BUILD)
        if process is None:
            await self.warden.stop(PROCESSES[BUILD], grace=0)
            await self._note(BUILD, ScriptStatus(ScriptState.RUNNING, digest=digest, started_at=clock.utc_now()))
            await self._launch(BUILD, command, env, restart=False)
        process = await self._ended()
        began = process.started_at if process else None
        if process is not None and process.exit_code == 0:
            end = ScriptStatus(ScriptState.SUCCESS, None, 0, digest, began, clock.utc_now())
        elif process is not None and process.state == "exited":
            code = process.exit_code
            end = ScriptStatus(ScriptState.FAILED, f"It ended with code {code}", code, digest, began, clock.utc_now())
        else:
            reason = f"It ran longer than {self._build_seconds:.0f} s and was ended"
            end = ScriptStatus(ScriptState.FAILED, reason, TIMED_OUT, digest, began, clock.utc_now())
        await self._note(BUILD, end)
        return end.state is ScriptState.SUCCESS

    async def _ended(self) -> ProcessStatus | None:
        """The build once it is over; None when it was ended because its time was."""
        latest = clock.monotonic_seconds() + self._build_seconds  # the container's own start time is not trusted
        backoff = Backoff(_FIRST_WAIT, _LONGEST_WAIT)
        while True:
            process = (await self.warden.processes()).get(PROCESSES[BUILD])
            if process is None or process.state == "exited":
                return process
            overdue = clock.utc_now() - process.started_at > timedelta(seconds=self._build_seconds)
            if overdue or clock.monotonic_seconds() > latest:
                await self.warden.stop(PROCESSES[BUILD], STOP_GRACE)
                return None
            await backoff.pause()

    async def _start(self, command: str, env: Mapping[str, str]) -> None:
        if await self._ours(START) is None:
            await self._launch(START, command, env, restart=True)
        await self._note(START, ScriptStatus(ScriptState.RUNNING, started_at=clock.utc_now()))

    async def _note_start_failed(self, reason: str, scripts: manifest.ManifestScripts) -> None:
        if scripts.start is not None:
            await self._note(START, ScriptStatus(ScriptState.FAILED, reason, finished_at=clock.utc_now()))

    async def _launch(self, name: str, command: str, env: Mapping[str, str], *, restart: bool) -> None:
        await self.warden.start(PROCESSES[name], ["/bin/sh", "-c", command], env=env, restart=restart)

    async def _ours(self, name: str) -> ProcessStatus | None:
        """The process of that script if an earlier attempt at this operation began it."""
        if self._operation.attempts == 1:
            return None
        process = (await self.warden.processes()).get(PROCESSES[name])
        return process if process is not None and process.started_at >= self._operation.created_at else None

    async def _note(self, name: str, script: ScriptStatus) -> None:
        if not await self._operation.guard(lambda connection: store.save(connection, self._agent_id, name, script)):
            raise AgentNotFound
