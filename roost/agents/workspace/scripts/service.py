"""Scripts of agents: requested by a start or a retry, run by an operation, supervised by the warden.

The operation can be interrupted anywhere: the next attempt finds the build by name and start time, and waits for it.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol
from urllib.parse import urlsplit

from sqlalchemy import Connection

from roost import work
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.errors import AgentNotFound
from roost.agents.registry.model import Agent
from roost.agents.workspace.scripts import manifest, model, store
from roost.agents.workspace.scripts.model import (
    BUILD,
    PROCESSES,
    InvalidManifest,
    ScriptLaunchFailed,
    ScriptState,
    ScriptStatus,
)
from roost.agents.workspace.scripts.run import ScriptRun
from roost.core import clock, log
from roost.core.db import Database
from roost.core.problem import Problem
from roost.core.sensitive import Sensitive
from roost.warden_client.client import ProcessStatus
from roost.warden_client.errors import ContainerNotRunning
from roost.work import ClaimedOperation, Operation

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
            return {name: ScriptStatus() for name in PROCESSES}
        processes = await self._processes(agent_id)
        return {name: model.current_status(name, stored.get(name, ScriptStatus()), processes) for name in PROCESSES}

    async def retry(self, agent_id: str) -> None:
        """Enqueue a run of both scripts and stop a running build.

        Raises AgentNotFound, AgentOnOtherHost, ScriptLaunchFailed.
        """
        await self._runtimes.agents.get_here(agent_id)
        try:
            await self._runtimes.get_warden(agent_id).stop(PROCESSES[BUILD], grace=0)
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
        except (AgentNotFound, ContainerNotRunning):
            return

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
            scripts = await manifest.read_manifest(run.warden, urlsplit(self._origin(agent.id)).netloc)
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
