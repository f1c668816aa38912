"""One run of an agent's scripts: the build until it ends, then the start script, each step stored at once."""

from collections.abc import Mapping
from datetime import timedelta

from roost.agents.registry.errors import AgentNotFound
from roost.agents.workspace.scripts import manifest, store
from roost.agents.workspace.scripts.model import (
    BUILD,
    PROCESSES,
    START,
    STOP_GRACE_SECONDS,
    TIMEOUT_EXIT_CODE,
    ScriptState,
    ScriptStatus,
)
from roost.core import clock
from roost.core.periodic import Backoff
from roost.warden_client.client import ProcessStatus, WardenClient
from roost.work import ClaimedOperation

_MIN_POLL_SECONDS, _MAX_POLL_SECONDS = 0.02, 1.0


class ScriptRun:
    """A run of an agent's scripts. Methods raise AgentNotFound, LeaseLost, and the warden's errors."""

    def __init__(self, operation: ClaimedOperation, agent_id: str, warden: WardenClient, build_seconds: float) -> None:
        self.warden = warden
        self._operation = operation
        self._agent_id = agent_id
        self._build_seconds = build_seconds

    async def run(self, scripts: manifest.ManifestScripts, env: Mapping[str, str], *, rebuild: bool) -> None:
        """Run both scripts; `rebuild` repeats a successful build of the same manifest."""
        stored = await self._operation.db.read(lambda connection: store.list_scripts(connection, self._agent_id))
        build = stored.get(BUILD, ScriptStatus())
        done = build.state is ScriptState.SUCCESS and build.digest == scripts.digest and not rebuild
        if await self._find_process(START) is None:
            await self.warden.stop(PROCESSES[START], STOP_GRACE_SECONDS)
            await self._save(START, ScriptStatus(ScriptState.PENDING) if scripts.start else ScriptStatus())
        if scripts.build is None:
            await self._save(BUILD, ScriptStatus())
        elif not done and not await self._build(scripts.build, env, scripts.digest):
            await self._save_start_failed("It was not started because the build failed", scripts)
            return
        if scripts.start is not None:
            await self._start(scripts.start, env)

    async def fail(self, reason: str) -> None:
        """Stop both scripts and mark them failed."""
        for name, process in PROCESSES.items():
            await self.warden.stop(process, STOP_GRACE_SECONDS)
            await self._save(name, ScriptStatus(ScriptState.FAILED, reason, finished_at=clock.utc_now()))

    async def _build(self, command: str, env: Mapping[str, str], digest: str) -> bool:
        process = await self._find_process(BUILD)
        if process is None:
            await self.warden.stop(PROCESSES[BUILD], grace=0)
            await self._save(BUILD, ScriptStatus(ScriptState.RUNNING, digest=digest, started_at=clock.utc_now()))
            await self._launch(BUILD, command, env, restart=False)
        process = await self._wait_for_build()
        started_at = process.started_at if process else None
        if process is not None and process.exit_code == 0:
            result = ScriptStatus(ScriptState.SUCCESS, None, 0, digest, started_at, clock.utc_now())
        elif process is not None and process.state == "exited":
            code = process.exit_code
            result = ScriptStatus(
                ScriptState.FAILED, f"It ended with code {code}", code, digest, started_at, clock.utc_now()
            )
        else:
            reason = f"It ran longer than {self._build_seconds:.0f} s and was ended"
            result = ScriptStatus(ScriptState.FAILED, reason, TIMEOUT_EXIT_CODE, digest, started_at, clock.utc_now())
        await self._save(BUILD, result)
        return result.state is ScriptState.SUCCESS

    async def _wait_for_build(self) -> ProcessStatus | None:
        """Wait for the build to end; stop it after the time limit and return None."""
        deadline = (
            clock.monotonic_seconds() + self._build_seconds
        )  # the container reports the start time, which is not trusted
        backoff = Backoff(_MIN_POLL_SECONDS, _MAX_POLL_SECONDS)
        while True:
            process = (await self.warden.processes()).get(PROCESSES[BUILD])
            if process is None or process.state == "exited":
                return process
            overdue = clock.utc_now() - process.started_at > timedelta(seconds=self._build_seconds)
            if overdue or clock.monotonic_seconds() > deadline:
                await self.warden.stop(PROCESSES[BUILD], STOP_GRACE_SECONDS)
                return None
            await backoff.pause()

    async def _start(self, command: str, env: Mapping[str, str]) -> None:
        if await self._find_process(START) is None:
            await self._launch(START, command, env, restart=True)
        await self._save(START, ScriptStatus(ScriptState.RUNNING, started_at=clock.utc_now()))

    async def _save_start_failed(self, reason: str, scripts: manifest.ManifestScripts) -> None:
        if scripts.start is not None:
            await self._save(START, ScriptStatus(ScriptState.FAILED, reason, finished_at=clock.utc_now()))

    async def _launch(self, name: str, command: str, env: Mapping[str, str], *, restart: bool) -> None:
        await self.warden.start(PROCESSES[name], ["/bin/sh", "-c", command], env=env, restart=restart)

    async def _find_process(self, name: str) -> ProcessStatus | None:
        """Return the script's process if an earlier attempt of this operation started it."""
        if self._operation.attempts == 1:
            return None
        process = (await self.warden.processes()).get(PROCESSES[name])
        return process if process is not None and process.started_at >= self._operation.created_at else None

    async def _save(self, name: str, script: ScriptStatus) -> None:
        if not await self._operation.guard(
            lambda connection: store.save_script(connection, self._agent_id, name, script)
        ):
            raise AgentNotFound
