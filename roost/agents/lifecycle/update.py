"""Update: another version of an agent's engine, tried on the agent itself, with a way back to version and state.

An operation of its own kind. How far it has come stands in its payload, so that the process after one that was killed
goes on from there: `save` (nothing has changed yet), `try` (the new version runs or does not), `return` (the old one is
brought back). Its result is what the caller is answered.
"""

from dataclasses import asdict, dataclass, replace

from sqlalchemy import Connection

from roost import work
from roost.agents.lifecycle import model, state_backup
from roost.agents.lifecycle.errors import AgentRestartFailed
from roost.agents.lifecycle.gateway import PROCESS
from roost.agents.lifecycle.health_check import until_healthy
from roost.agents.lifecycle.model import UPDATE, UpdateResult
from roost.agents.lifecycle.start import StartWorkflow
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.errors import AgentNotFound
from roost.agents.registry.model import REASON_LIMIT, Agent, AgentState
from roost.agents.registry.repository import AgentRepository
from roost.agents.versions.errors import VersionInstallFailed
from roost.agents.versions.model import INSTALL_SECONDS
from roost.agents.versions.service import VersionService
from roost.core import log
from roost.core.db import Database
from roost.core.log import redact_credentials
from roost.core.problem import Problem
from roost.core.sanitize import sanitize_lines
from roost.work import JSON, ClaimedOperation, OperationState, OperationWorker

_SAVE, _TRY, _RETURN = "save", "try", "return"
_LATEST = "latest"
_log = log.get_logger("update")


@dataclass(frozen=True)
class _UpdateStep:
    """`reason` says why the way leads back; `tried`, that the new version may have changed the state."""

    to: str
    phase: str = _SAVE
    previous: str = ""
    tried: bool = False
    reason: str = ""


class UpdateWorkflow:
    """Handles `agent.update`."""

    def __init__(
        self,
        db: Database,
        queue: OperationWorker,
        roster: AgentRepository,
        reach: AgentRuntimes,
        versions: VersionService,
        start: StartWorkflow,
    ) -> None:
        self._db = db
        self._queue = queue
        self._roster = roster
        self._reach = reach
        self._versions = versions
        self._start = start

    async def __call__(self, agent_id: str, tag: str | None = None) -> UpdateResult:
        """Update to the newest version, or to that of `tag`. Returns when the agent runs, at the new or the old one.

        Raises AgentNotFound, InvalidVersionName and its kin, and RestartFailed when the agent does not run any more.
        """
        agent = await self._roster.get(agent_id)
        engine = self._reach.get_engine(agent.engine)
        wanted = tag if tag not in {None, "", _LATEST} else None
        version = wanted or await self._versions.find_latest(engine, agent.engine_version)
        await self._versions.require(engine, version)
        operation_id = await self._db.write(lambda connection: _enqueue(connection, agent_id, version))
        self._queue.wake()
        starts = 2 * (engine.start_deadline + model.START_GRACE)
        operation = await self._queue.wait(operation_id, INSTALL_SECONDS + state_backup.SECONDS + starts)
        await self._roster.get(agent_id)  # it may have been deleted meanwhile
        if operation.state is not OperationState.DONE:
            raise AgentRestartFailed
        return UpdateResult(**operation.result)

    async def handle(self, operation: ClaimedOperation) -> JSON:
        """`agent.update`, idempotent: can be cut off anywhere and run again."""
        step = _UpdateStep(**operation.payload)
        try:
            if step.phase == _SAVE:
                agent = await self._roster.get(operation.subject)
                if (over := await self._over_before_it_begins(agent, step.to)) is not None:
                    return asdict(over)
                step = await self._leave(operation, replace(step, previous=agent.engine_version))
            if step.phase == _TRY:
                step = await self._try(operation, step)
            if step.phase == _RETURN:
                return asdict(await self._return(operation, step))
        except AgentNotFound:
            return {}
        return asdict(UpdateResult(True, step.previous, step.to, f"Updated from {step.previous} to {step.to}"))

    async def _over_before_it_begins(self, agent: Agent, version: str) -> UpdateResult | None:
        """The end, where there is nothing to do, or no such version to be had: the agent runs on untouched."""
        current = agent.engine_version
        if current == version:
            return UpdateResult(True, current, current, f"Already at {version}")
        try:
            await self._versions.install(self._reach.get_engine(agent.engine), version)
        except VersionInstallFailed as problem:
            return UpdateResult(False, current, current, f"{problem.message}. The agent runs on at {current}")
        return None

    async def _leave(self, operation: ClaimedOperation, step: _UpdateStep) -> _UpdateStep:
        """Stop the gateway and put aside what it remembers; then the new version is the agent's."""
        await operation.guard(lambda c: self._roster.set_state(c, operation.subject, AgentState.STARTING))
        agent = await self._roster.get(operation.subject)
        warden = self._reach.get_warden(agent.id)
        try:
            await self._start.open(replace(agent, engine_version=step.to), fresh=False)
            await warden.stop(PROCESS)
            await state_backup.save(warden, operation.id, self._reach.get_engine(agent.engine).state)
        except Exception as error:  # noqa: BLE001 - whatever it is, the gateway is to run again
            reason = f"{step.to} was not tried: {_shown(error)}"
            return await self._go_on(operation, replace(step, phase=_RETURN, reason=reason), step.previous)
        return await self._go_on(operation, replace(step, phase=_TRY, tried=True), step.to)

    async def _try(self, operation: ClaimedOperation, step: _UpdateStep) -> _UpdateStep:
        agent = await self._roster.get(operation.subject)
        engine = self._reach.get_engine(agent.engine)
        try:
            await self._start.bring_up(agent, fresh_container=True)
            token = await self._roster.get_internal_token(agent.id)
            await until_healthy(engine, self._reach.port_dialer(agent.id), token, step.to)
        except Exception as error:  # noqa: BLE001 - whatever it is, the old version is to run again
            reason = f"{step.to} did not hold: {_shown(error)}"
            _log.warning("agent.update_reverted", agent=agent.id, version=step.to, reason=reason)
            return await self._go_on(operation, replace(step, phase=_RETURN, reason=reason), step.previous)
        await operation.guard(lambda connection: self._start.arrived(connection, agent.id))
        _log.info("agent.updated", agent=agent.id, previous=step.previous, version=step.to)
        return step

    async def _return(self, operation: ClaimedOperation, step: _UpdateStep) -> UpdateResult:
        """The old version on the state that was put aside; where that cannot be had, on what there is."""
        agent = await self._roster.get(operation.subject)
        said = [step.reason, f"The agent runs at {step.previous} again"]
        try:
            await self._start.open(agent, fresh=True)
            if step.tried and (lost := await self._restore(operation, agent)):
                said.append(lost)
            await self._start.bring_up(agent, fresh_container=False)
        except Exception as error:
            told = f"{step.reason}\nThe return to {step.previous} failed too: {_shown(error)}"
            await operation.guard(lambda c: self._roster.set_state(c, agent.id, AgentState.FAILED, told))
            raise
        await operation.guard(lambda connection: self._start.arrived(connection, agent.id))
        return UpdateResult(False, step.previous, step.previous, "\n".join(said))

    async def _restore(self, operation: ClaimedOperation, agent: Agent) -> str | None:
        """Why not, where it was not: the old version then has to do with what there is."""
        try:
            await state_backup.restore(
                self._reach.get_warden(agent.id), operation.id, self._reach.get_engine(agent.engine).state
            )
        except Problem as problem:
            return problem.message
        return None

    async def _go_on(self, operation: ClaimedOperation, step: _UpdateStep, version: str) -> _UpdateStep:
        """The step is taken and known, and the version with it, in one transaction."""

        def note(connection: Connection) -> None:
            work.update_payload(connection, operation, asdict(step))
            self._roster.set_version(connection, operation.subject, version)

        await operation.guard(note)
        return step


def _enqueue(connection: Connection, agent_id: str, version: str) -> str:
    """Who asks for the same while one waits for its turn gets that one."""
    payload = asdict(_UpdateStep(version))
    for other in work.list_waiting_operations(connection, UPDATE, agent_id):
        if other.payload == payload:
            return other.id
    return work.add_operation(connection, UPDATE, agent_id, payload).id


def _shown(error: Exception) -> str:
    """As callers may see it: an agent may have had a hand in it."""
    reason = error.message if isinstance(error, Problem) else "Internal error"
    return redact_credentials(sanitize_lines(reason))[-REASON_LIMIT:]
