"""Update: installs another version of an agent's engine, and rolls back version and state if it does not work.

The payload of the operation records its phase, so that another attempt resumes there: `save` (nothing has changed yet),
`try` (start the new version), `return` (roll back). Its result is the result of the request.

The state is copied in the container, so links and names that an agent left there lead nowhere else. The agent can
damage the copy, as it can the state itself. Only the copy of the last update is kept, in `.roost/saved` of the home.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from sqlalchemy import Connection

from roost import work
from roost.agents.lifecycle.versions.model import INSTALL_SECONDS, VersionInstallFailed
from roost.agents.lifecycle.versions.service import VersionService
from roost.agents.lifecycle.workflows import model
from roost.agents.lifecycle.workflows.model import UPDATE, AgentRestartFailed, UpdateResult, public_reason
from roost.agents.lifecycle.workflows.start import StartWorkflow
from roost.agents.registry.agent_runtimes import GATEWAY_PROCESS, AgentRuntimes
from roost.agents.registry.errors import AgentNotFound
from roost.agents.registry.model import REASON_LIMIT, Agent, AgentState
from roost.agents.registry.repository import enqueue_once
from roost.agents.workspace.snapshots.model import SnapshotTrigger
from roost.agents.workspace.snapshots.service import SnapshotService
from roost.core import clock, log
from roost.core.log import redact_credentials
from roost.core.periodic import Backoff
from roost.core.problem import Problem
from roost.core.sanitize import sanitize_lines
from roost.core.sensitive import Sensitive
from roost.drivers.engine.contract import Dial, Engine
from roost.warden_client.client import WardenClient
from roost.work import JSON, ClaimedOperation, OperationState, OperationWorker

_SAVE, _TRY, _RETURN = "save", "try", "return"
_LATEST = "latest"
_HEALTH_SECONDS, _HEALTH_PAUSE = 20.0, 0.5
_BACKUP_SECONDS = 600.0
_NO_SPACE, _GONE = 3, 4
_COPY_ERRORS = {
    _NO_SPACE: "There is not enough space to copy the gateway's state",
    _GONE: "The copy of the gateway's state is gone",
}
"""By the exit code of a script; those codes are of one script each."""

_SAVE_SCRIPT = f"""set -eu
cd "$HOME"
name=$1; shift
rm -rf .roost/saved
mkdir -p .roost/saved/.new
need=65536
for folder; do
  if [ -e "$folder" ]; then need=$((need + $(du -sk -- "$folder" | cut -f1))); fi
done
free=$(df -Pk . | tail -n 1 | tr -s ' ' | cut -d' ' -f4)
[ "$free" -gt "$need" ] || exit {_NO_SPACE}
for folder; do
  if [ -e "$folder" ]; then
    mkdir -p ".roost/saved/.new/$(dirname -- "$folder")"
    cp -a -- "$folder" ".roost/saved/.new/$folder"
  fi
done
sync -f .roost/saved
mv .roost/saved/.new ".roost/saved/$name"
sync -f .roost/saved
"""
_RESTORE_SCRIPT = f"""set -eu
cd "$HOME"
saved=.roost/saved/$1; shift
[ -d "$saved" ] || exit {_GONE}
for folder; do
  rm -rf -- "$folder"
  if [ -e "$saved/$folder" ]; then
    mkdir -p "$(dirname -- "$folder")"
    cp -a -- "$saved/$folder" "$folder"
  fi
done
"""
_log = log.get_logger("update")


class StateBackupFailed(Problem):
    """The state could not be saved or restored."""

    message = "The gateway's state could not be copied"


class GatewayUnhealthy(Problem):
    message = "The gateway did not report that it is healthy"


@dataclass(frozen=True)
class _UpdateStep:
    """Progress of an update. `reason`: why it rolls back; `tried`: the new version may have changed the state."""

    to: str
    phase: str = _SAVE
    previous: str = ""
    tried: bool = False
    reason: str = ""


@dataclass(frozen=True)
class UpdateWorkflow:
    _queue: OperationWorker
    _runtimes: AgentRuntimes
    _versions: VersionService
    _start: StartWorkflow
    _snapshots: SnapshotService

    async def __call__(self, agent_id: str, tag: str | None = None) -> UpdateResult:
        """Update to the version `tag`, or to the newest; return when the agent runs at the new or the old version.

        Raises AgentNotFound, AgentOnOtherHost, the errors of `VersionService.require`, and AgentRestartFailed if the
        agent does not run.
        """
        agent = await self._runtimes.agents.get_here(agent_id)
        engine = self._runtimes.get_engine(agent.engine)
        named = None if tag == _LATEST else tag
        version = await self._versions.find_latest(engine, agent.engine_version) if named is None else named
        await self._versions.require(engine, version)
        await self._snapshots.try_sync(agent_id, SnapshotTrigger.UPDATE)
        first = asdict(_UpdateStep(version))
        operation_id = await self._queue.db.write(lambda connection: enqueue_once(connection, UPDATE, agent, first))
        starts = 2 * (engine.start_deadline + model.START_GRACE)
        operation = await self._queue.wait(operation_id, INSTALL_SECONDS + _BACKUP_SECONDS + starts)
        await self._runtimes.agents.get(agent_id)  # raises if it was deleted meanwhile
        if operation.state is not OperationState.DONE:
            raise AgentRestartFailed
        return UpdateResult(**operation.result)

    async def handle(self, operation: ClaimedOperation) -> JSON:
        """Handle `agent.update`, idempotently."""
        step = _UpdateStep(**operation.payload)
        try:
            if step.phase == _SAVE:
                agent = await self._runtimes.agents.get_here(operation.subject)
                if (result := await self._install(agent, step.to)) is not None:
                    return asdict(result)
                step = await self._save(operation, replace(step, previous=agent.engine_version))
            if step.phase == _TRY:
                step = await self._try_version(operation, step)
            if step.phase == _RETURN:
                return asdict(await self._roll_back(operation, step))
        except AgentNotFound:
            return {}
        return asdict(UpdateResult(True, step.previous, step.to, f"Updated from {step.previous} to {step.to}"))

    async def _install(self, agent: Agent, version: str) -> UpdateResult | None:
        """Install the version; return the final result if the agent has it already or the install fails."""
        current = agent.engine_version
        if current == version:
            return UpdateResult(True, current, current, f"Already at {version}")
        try:
            await self._versions.install(self._runtimes.get_engine(agent.engine), version)
        except VersionInstallFailed as problem:
            return UpdateResult(False, current, current, f"{problem.message}. The agent still runs at {current}")
        return None

    async def _save(self, operation: ClaimedOperation, step: _UpdateStep) -> _UpdateStep:
        """Stop the gateway and back up its state; then record the new version."""
        await operation.guard(lambda c: self._runtimes.agents.set_state(c, operation.subject, AgentState.STARTING))
        agent = await self._runtimes.agents.get(operation.subject)
        warden = self._runtimes.get_warden(agent.id)
        try:
            await self._start.start_container(replace(agent, engine_version=step.to))
            await warden.stop(GATEWAY_PROCESS)
            await _copy_state(warden, _SAVE_SCRIPT, operation.id, self._runtimes.get_engine(agent.engine).state)
        except Exception as error:  # noqa: BLE001 - the gateway must run again after any error
            reason = f"{step.to} was not tried: {_public_reason(error)}"
            return await self._record(operation, replace(step, phase=_RETURN, reason=reason), step.previous)
        return await self._record(operation, replace(step, phase=_TRY, tried=True), step.to)

    async def _try_version(self, operation: ClaimedOperation, step: _UpdateStep) -> _UpdateStep:
        agent = await self._runtimes.agents.get(operation.subject)
        engine = self._runtimes.get_engine(agent.engine)
        try:
            await self._start.start_agent(agent, new_container=True)
            token = await self._runtimes.agents.get_internal_token(agent.id)
            await _wait_until_healthy(engine, self._runtimes.get_warden(agent.id).dial, token, step.to)
        except Exception as error:  # noqa: BLE001 - the old version must run again after any error
            reason = f"{step.to} did not work: {_public_reason(error)}"
            _log.warning("agent.update_reverted", agent=agent.id, version=step.to, reason=reason)
            return await self._record(operation, replace(step, phase=_RETURN, reason=reason), step.previous)
        await operation.guard(lambda connection: self._start.mark_running(connection, agent.id))
        _log.info("agent.updated", agent=agent.id, previous=step.previous, version=step.to)
        return step

    async def _roll_back(self, operation: ClaimedOperation, step: _UpdateStep) -> UpdateResult:
        """Start the old version with its saved state, or with the present state if that cannot be restored."""
        agent = await self._runtimes.agents.get(operation.subject)
        output = [step.reason, f"The agent runs at {step.previous} again"]
        try:
            await self._start.start_container(agent, new_container=True)
            if step.tried:
                try:
                    folders = self._runtimes.get_engine(agent.engine).state
                    await _copy_state(self._runtimes.get_warden(agent.id), _RESTORE_SCRIPT, operation.id, folders)
                except Problem as problem:  # the old version runs with the present state then
                    output.append(problem.message)
            await self._start.start_agent(agent, new_container=False)
        except Exception as error:
            reason = f"{step.reason}\nThe rollback to {step.previous} failed too: {_public_reason(error)}"
            await operation.guard(lambda c: self._runtimes.agents.set_state(c, agent.id, AgentState.FAILED, reason))
            raise
        await operation.guard(lambda connection: self._start.mark_running(connection, agent.id))
        return UpdateResult(False, step.previous, step.previous, "\n".join(output))

    async def _record(self, operation: ClaimedOperation, step: _UpdateStep, version: str) -> _UpdateStep:
        """Record the step and the agent's version in one transaction."""

        def write(connection: Connection) -> None:
            work.update_payload(connection, operation, asdict(step), step.phase)
            self._runtimes.agents.set_version(connection, operation.subject, version)

        await operation.guard(write)
        return step


async def _copy_state(warden: WardenClient, script: str, name: str, folders: Sequence[str]) -> None:
    """Save or restore `folders` of the home under a name. Raises StateBackupFailed.

    Both can be repeated after an interruption: a save deletes earlier copies, as long as the folders have not changed,
    and a restore keeps the copy.
    """
    arguments = ["/bin/sh", "-c", script, "saved", name, *folders]
    result = await warden.exec(arguments, timeout=_BACKUP_SECONDS, output_limit=4096)
    if result.exit_code:
        raise StateBackupFailed(_COPY_ERRORS.get(result.exit_code))


async def _wait_until_healthy(engine: Engine, dial: Dial, token: Sensitive[str], version: str) -> None:
    """Return once the gateway reports to be healthy at that version. Raises GatewayUnhealthy."""
    deadline, backoff = clock.monotonic_seconds() + _HEALTH_SECONDS, Backoff(_HEALTH_PAUSE)
    while True:
        try:
            reported = await engine.health(dial, token)
        except Problem as problem:
            if clock.monotonic_seconds() > deadline:
                raise GatewayUnhealthy(f"{GatewayUnhealthy.message}: {problem.message}") from problem
            await backoff.pause()
            continue
        if reported != version:
            raise GatewayUnhealthy(f"The gateway reports version {reported[:64]!a}")
        return


def _public_reason(error: Exception) -> str:
    """Return the error as users may see it, sanitized because it may come from the agent."""
    return redact_credentials(sanitize_lines(public_reason(error)))[-REASON_LIMIT:]
