"""Scripts of agents: requested by a start or a retry, run by an operation, supervised by the warden.

The operation can be interrupted anywhere: the next attempt finds the build by name and start time, and waits for it.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol
from urllib.parse import urlsplit

from sqlalchemy import Connection

from roost import work
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.errors import AgentNotFound
from roost.agents.registry.model import Agent
from roost.agents.workspace.scripts import model, store
from roost.agents.workspace.scripts.model import (
    BUILD,
    SCRIPTS,
    START,
    STOP_GRACE_SECONDS,
    TIMEOUT_EXIT_CODE,
    InvalidManifest,
    ScriptLaunchFailed,
    ScriptState,
    ScriptStatus,
)
from roost.core import clock, log
from roost.core.db import Database
from roost.core.periodic import Backoff
from roost.core.problem import Problem
from roost.core.sensitive import Sensitive
from roost.warden_client.client import ProcessStatus, WardenClient
from roost.warden_client.errors import ContainerNotRunning
from roost.work import ClaimedOperation, Operation

_MIN_POLL_SECONDS, _MAX_POLL_SECONDS = 0.02, 1.0


@dataclass(frozen=True)
class ScriptRun:
    """One run of an agent's scripts: the build until it ends, then the start script, each step stored at once.

    Methods raise AgentNotFound, LeaseLost, and the warden's errors.
    """

    _operation: ClaimedOperation
    _agent_id: str
    warden: WardenClient
    _build_seconds: float

    async def run(self, scripts: model.ManifestScripts, env: Mapping[str, str], *, rebuild: bool) -> None:
        """Run both scripts; `rebuild` repeats a successful build of the same manifest."""
        stored = await self._operation.db.read(lambda connection: store.list_scripts(connection, self._agent_id))
        build = stored.get(BUILD, ScriptStatus())
        done = build.state is ScriptState.SUCCESS and build.digest == scripts.digest and not rebuild
        if await self._find_process(START) is None:
            await self.warden.stop(START, STOP_GRACE_SECONDS)
            await self._save(START, ScriptStatus(ScriptState.PENDING) if scripts.start else ScriptStatus())
        if scripts.build is None:
            await self._save(BUILD, ScriptStatus())
        elif not done and not await self._build(scripts.build, env, scripts.digest):
            if scripts.start is not None:
                reason = "It was not started because the build failed"
                await self._save(START, ScriptStatus(ScriptState.FAILED, reason, finished_at=clock.utc_now()))
            return
        if scripts.start is not None:
            await self._start(scripts.start, env)

    async def fail(self, reason: str) -> None:
        """Stop both scripts and mark them failed."""
        for name in SCRIPTS:
            await self.warden.stop(name, STOP_GRACE_SECONDS)
            await self._save(name, ScriptStatus(ScriptState.FAILED, reason, finished_at=clock.utc_now()))

    async def _build(self, command: str, env: Mapping[str, str], digest: str) -> bool:
        process = await self._find_process(BUILD)
        if process is None:
            await self.warden.stop(BUILD, grace=0)
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
        # The container reports the start time, which is not trusted.
        deadline = clock.monotonic_seconds() + self._build_seconds
        backoff = Backoff(_MIN_POLL_SECONDS, _MAX_POLL_SECONDS)
        while True:
            process = (await self.warden.processes()).get(BUILD)
            if process is None or process.state == "exited":
                return process
            overdue = clock.utc_now() - process.started_at > timedelta(seconds=self._build_seconds)
            if overdue or clock.monotonic_seconds() > deadline:
                await self.warden.stop(BUILD, STOP_GRACE_SECONDS)
                return None
            await backoff.pause()

    async def _start(self, command: str, env: Mapping[str, str]) -> None:
        if await self._find_process(START) is None:
            await self._launch(START, command, env, restart=True)
        await self._save(START, ScriptStatus(ScriptState.RUNNING, started_at=clock.utc_now()))

    async def _launch(self, name: str, command: str, env: Mapping[str, str], *, restart: bool) -> None:
        await self.warden.start(name, ["/bin/sh", "-c", command], env=env, restart=restart)

    async def _find_process(self, name: str) -> ProcessStatus | None:
        """Return the script's process if an earlier attempt of this operation started it."""
        if self._operation.attempts == 1:
            return None
        process = (await self.warden.processes()).get(name)
        return process if process is not None and process.started_at >= self._operation.created_at else None

    async def _save(self, name: str, script: ScriptStatus) -> None:
        if not await self._operation.guard(
            lambda connection: store.save_script(connection, self._agent_id, name, script)
        ):
            raise AgentNotFound


Origin = Callable[[str], str]


class EnvironmentInputs(Protocol):
    """Secrets and variables for an agent's programs, by name."""

    @property
    def environment(self) -> Mapping[str, Sensitive[str]]: ...


LoadInputs = Callable[[Agent], Awaitable[EnvironmentInputs]]
_log = log.get_logger("scripts")


@dataclass(frozen=True)
class ScriptService:
    """Scripts of agents; `origin` returns an agent's public origin, `build_seconds` is the time limit of a build."""

    _db: Database
    _runtimes: AgentRuntimes
    _origin: Origin
    _load_inputs: LoadInputs
    _build_seconds: float = model.BUILD_TIMEOUT_SECONDS

    async def list(self, agent_id: str) -> Mapping[str, ScriptStatus]:
        """Return the current status of both scripts by name."""
        stored = await self._db.read(lambda connection: store.list_scripts(connection, agent_id))
        if not stored:
            return {name: ScriptStatus() for name in SCRIPTS}
        processes = await self._processes(agent_id)
        return {name: model.current_status(name, stored.get(name, ScriptStatus()), processes) for name in SCRIPTS}

    async def retry(self, agent_id: str) -> None:
        """Enqueue a run of both scripts and stop a running build.

        Raises AgentNotFound, AgentOnOtherHost, ScriptLaunchFailed.
        """
        await self._runtimes.agents.get_here(agent_id)
        try:
            await self._runtimes.get_warden(agent_id).stop(BUILD, grace=0)
        except Problem:
            raise ScriptLaunchFailed from None
        await self._db.write(lambda connection: self.enqueue(connection, agent_id, rebuild=True))

    def enqueue(self, connection: Connection, agent_id: str, *, rebuild: bool = False) -> str:
        """Enqueue a run in the caller's transaction, unless an equivalent one is waiting; return its operation's id."""
        payload = model.REBUILD if rebuild else None
        subject = model.operation_subject(agent_id)
        for other in work.list_waiting_operations(connection, model.OPERATION_KIND, subject):
            if other.payload in (payload, model.REBUILD):
                return other.id
        host_id = self._runtimes.agents.host_id
        return work.add_operation(connection, model.OPERATION_KIND, subject, payload, host=host_id).id

    async def handle(self, operation: ClaimedOperation) -> None:
        """Handle `agent.scripts`, idempotently; do nothing without an agent or container."""
        agent_id = model.subject_agent_id(operation.subject)
        try:
            agent = await self._runtimes.agents.get_here(agent_id)
            run = ScriptRun(operation, agent_id, self._runtimes.get_warden(agent_id), self._build_seconds)
            await self._run(run, agent, rebuild=operation.payload == model.REBUILD)
        except AgentNotFound:
            return
        except ContainerNotRunning:
            if await self._runtimes.has_container(agent_id):  # the connection to it broke
                raise

    @staticmethod
    def mark_failed(connection: Connection, operation: Operation, reason: str) -> None:
        """Set the scripts `failed` whose run has failed."""
        agent_id = model.subject_agent_id(operation.subject)
        for name, script in store.list_scripts(connection, agent_id).items():
            if script.state in {ScriptState.PENDING, ScriptState.RUNNING}:
                failed = replace(script, state=ScriptState.FAILED, reason=reason, finished_at=clock.utc_now())
                store.save_script(connection, agent_id, name, failed)

    async def _run(self, run: ScriptRun, agent: Agent, *, rebuild: bool) -> None:
        try:
            scripts = await model.read_manifest(run.warden, urlsplit(self._origin(agent.id)).netloc)
            environment = (await self._load_inputs(agent)).environment
            variables = {name: value.reveal() for name, value in environment.items()}
            await run.run(scripts, variables, rebuild=rebuild)
        except ContainerNotRunning:
            raise
        except InvalidManifest as error:
            await run.fail(error.message)
        except Problem as problem:
            _log.warning("scripts.run_failed", agent=agent.id, reason=problem.message)
            await run.fail(problem.message)

    async def _processes(self, agent_id: str) -> Mapping[str, ProcessStatus] | None:
        try:
            return await self._runtimes.get_warden(agent_id).processes()
        except Problem:
            return None
