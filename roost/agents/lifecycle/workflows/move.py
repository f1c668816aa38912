"""Move: gives an agent to another runtime of this server or to another server, and takes it back if it does not run.

The payload of the operation records its phase, so that another attempt resumes there: `copy` (the agent is where it
was), `try` (start it in the new place), `return` (start it in the old one), `clean` (it runs in the new one). The
phase and the place of the agent change in one transaction, so at any point exactly one runtime may start its gateway;
the other one has at most a container of ours that only copies files. To another server the operation goes along for
`try`, and comes back. Decision 0056 says why.
"""

import asyncio
from dataclasses import asdict, dataclass, replace
from datetime import timedelta

from sqlalchemy import Connection

from roost import work
from roost.agents.lifecycle.workflows.model import (
    MOVE,
    AgentRelays,
    AgentRestartFailed,
    MoveResult,
    UnknownRuntime,
    public_reason,
)
from roost.agents.lifecycle.workflows.move_targets import MoveTarget, MoveTargets
from roost.agents.lifecycle.workflows.start import StartWorkflow
from roost.agents.registry.agent_containers import RuntimeAssignments, mark_agent
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.errors import AgentNotFound, AgentNotRunning
from roost.agents.registry.model import Agent, AgentState
from roost.agents.registry.repository import enqueue_once, find_agent, set_agent_host, set_agent_runtime
from roost.agents.workspace.git.recovery import PushRecovery
from roost.core import clock, log
from roost.core.problem import Problem
from roost.drivers.runtime.contract import Runtime, RuntimeFailed
from roost.warden_client.client import WardenClient
from roost.warden_client.tree_copy import TreeCopy
from roost.work import JSON, ClaimedOperation, LeaseLost, OperationState, OperationWorker, Settlement

_COPY, _TRY, _RETURN, _CLEAN = "copy", "try", "return", "clean"
_COPY_SECONDS = 3600.0
_PAUSE = timedelta(seconds=15)
_log = log.get_logger("move")


class _NotDeleted(Exception):  # noqa: N818 - the move goes on when the runtime answers
    """A runtime may still have a container or files of the agent."""


@dataclass(frozen=True)
class _MoveStep:
    """Progress of a move.

    to, source: names of the new and the old runtime. server, server_name, origin: to another server, its id and name,
    and the id of the old one; `to` is empty until the agent runs there. reason: why it is undone. tried: the gateway
    may have been started in the new runtime.
    """

    to: str
    phase: str = _COPY
    source: str = ""
    tried: bool = False
    reason: str = ""
    server: str = ""
    server_name: str = ""
    origin: str = ""

    @property
    def place(self) -> str:
        return f"the server {self.server_name}" if self.server else self.to

    @property
    def host(self) -> str:
        """Id of the server that carries out the phase, empty if there is only one."""
        return self.server if self.phase == _TRY else self.origin


@dataclass(frozen=True)
class MoveWorkflow:
    """Moves agents."""

    _queue: OperationWorker
    _runtimes: AgentRuntimes
    _start: StartWorkflow
    _pushes: PushRecovery
    _relays: AgentRelays
    targets: MoveTargets

    @property
    def _assignments(self) -> RuntimeAssignments:
        return self._runtimes.runtime.assignments

    @property
    def _own_id(self) -> str:
        return self._runtimes.agents.host_id

    async def __call__(self, agent_id: str, to: str) -> MoveResult:
        """Move a running agent to the runtime or server `to`; return when it runs there, or again where it was.

        Raises AgentNotFound, AgentOnOtherHost, AgentNotRunning, UnknownRuntime, and AgentRestartFailed if the agent
        does not run.
        """
        agent = await self._runtimes.agents.get_here(agent_id)
        step = await self._plan(to)
        if agent.state is not AgentState.RUNNING:
            raise AgentNotRunning(detail="Only a running agent can be moved: restart it first")
        payload = asdict(step)
        operation_id = await self._queue.db.write(lambda connection: enqueue_once(connection, MOVE, agent, payload))
        operation = await self._queue.wait(operation_id, _COPY_SECONDS + 2 * self._start.get_start_seconds(agent))
        await self._runtimes.agents.get(agent_id)  # raises if it was deleted meanwhile
        if operation.state is not OperationState.DONE:
            raise AgentRestartFailed
        return MoveResult(**operation.result)

    async def _plan(self, to: str) -> _MoveStep:
        if to in self._assignments.by_name:
            return _MoveStep(to)
        servers = await self.targets.list_servers()
        if len(found := [server for server in servers if to in (server.id, server.name)]) == 1:
            return _MoveStep("", server=found[0].id, server_name=found[0].name, origin=self._own_id)
        known = [*self._assignments.by_name, *(f"{server.name} ({server.id})" for server in servers)]
        raise UnknownRuntime(detail=f"to must be one of {', '.join(known)}, got {to[:64]!r}")

    async def handle(self, operation: ClaimedOperation) -> JSON | Settlement:
        """Handle `agent.move`, idempotently.

        While a runtime does not say that it has deleted the agent, the move stays in front of all other operations of
        the agent: a failed one would let a restart run the agent twice.
        """
        try:
            return await self._advance(operation)
        except _NotDeleted as waiting:
            reason, at = str(waiting), clock.utc_now() + _PAUSE

        def postpone(connection: Connection) -> None:
            agent = find_agent(connection, operation.subject)
            if agent is not None and agent.state is AgentState.STARTING:
                self._runtimes.agents.set_state(connection, agent.id, AgentState.FAILED, reason)
            work.postpone_operation(connection, operation, at)

        return Settlement(postpone)

    async def _advance(self, operation: ClaimedOperation) -> JSON | Settlement:
        step, agent_id = _MoveStep(**operation.payload), operation.subject
        if step.host not in ("", self._own_id):  # this server ended before it had passed the operation on
            return self._pass_on(operation, step)
        self._assignments.held.discard(agent_id)
        try:
            step = await self._run_phase(operation, step)
        except AgentNotFound:
            if step.server and step.phase == _TRY:
                return self._pass_on(operation, replace(step, phase=_CLEAN))
            await self._discard(step, agent_id)
            return {}
        if step.host not in ("", self._own_id):
            return self._pass_on(operation, step)
        return asdict(await self._finish(step, agent_id))

    async def _finish(self, step: _MoveStep, agent_id: str) -> MoveResult:
        if step.phase == _CLEAN:
            await self._delete(step.source, agent_id)
            if step.server:
                await self.targets.delete_repository(agent_id)
            _log.info("agent.moved", agent=agent_id, previous=step.source, runtime=step.to, server=step.server)
            moved = f"Moved to {step.place}" if step.server else f"Moved from {step.source} to {step.to}"
            return MoveResult(True, step.to, moved)
        if step.source == step.to:
            return MoveResult(True, step.to, f"The agent is in the runtime {step.to}")
        return MoveResult(False, step.source, f"{step.reason}\nThe agent runs in {step.source} as before")

    async def _run_phase(self, operation: ClaimedOperation, step: _MoveStep) -> _MoveStep:
        """Carry out what this server does of a move, and return how far it is then. Raises AgentNotFound."""
        if step.server and step.phase == _CLEAN:  # the agent is on the other server
            return step
        agent = await self._runtimes.agents.get_here(operation.subject)
        self._assignments.assign(agent.id, agent.runtime)  # an attempt may have lost its lease before it did so
        if step.phase == _COPY:
            step = replace(step, source=self._assignments.get_name(agent.id))
            if step.source == step.to:
                return step
            # Recorded before a second runtime has files of the agent, so that the next server knows its own.
            step = await self._copy(operation, agent, await self._record(operation, step, step.source))
        if step.phase == _TRY and step.host in ("", self._own_id):
            step = await self._try_target(operation, step)
        if step.phase == _RETURN and step.host in ("", self._own_id):
            await self._return(operation, step)
        return step

    def _pass_on(self, operation: ClaimedOperation, step: _MoveStep) -> Settlement:
        """Give the operation, and the agent unless it is where it belongs, to the server of the next phase."""

        def write(connection: Connection) -> None:
            work.update_payload(connection, operation, asdict(step), step.phase)
            if step.phase != _CLEAN:
                set_agent_host(connection, operation.subject, step.host, step.source if step.phase == _RETURN else None)
                work.transfer_operations(connection, operation.subject, step.host)  # what waits for the end of the move
            work.postpone_operation(connection, operation, clock.utc_now(), step.host)

        return Settlement(write)

    async def _copy(self, operation: ClaimedOperation, agent: Agent, step: _MoveStep) -> _MoveStep:
        """Copy the files while the agent runs; stop it, copy what has changed, and begin the next phase."""
        try:
            source = self._assignments.get_runtime(step.source)
            async with asyncio.timeout(_COPY_SECONDS), self.targets.open_target(step.to, step.server) as target:
                with mark_agent(self._assignments.moving, agent.id):
                    usage = await source.disk.measure(agent.id, paced=False)
                    await target.prepare(agent, usage.size)
                    try:
                        copy = TreeCopy(_warden(source, agent), target.warden(agent.id))
                        if await source.find_container(agent.id) is not None:
                            await copy.run()
                        await target.copy_repository(agent.id)
                        return await self._finish_copy(operation, agent, step, copy, source, target)
                    finally:
                        await target.release(agent.id)
        except (AgentNotFound, LeaseLost):
            raise
        except TimeoutError:
            error = RuntimeFailed(f"Copying its files took longer than {_COPY_SECONDS / 3600:.0f} h")
            return await self._give_up(operation, step, error)
        except Exception as error:  # noqa: BLE001 - the agent must run again after any error
            return await self._give_up(operation, step, error)

    async def _finish_copy(
        self,
        operation: ClaimedOperation,
        agent: Agent,
        step: _MoveStep,
        copy: TreeCopy,
        source: Runtime,
        target: MoveTarget,
    ) -> _MoveStep:
        agents, spec = self._runtimes.agents, self.targets.copy_spec(agent)
        # A new container has none of the agent's programs, so nothing writes to its files.
        async with self._pushes.exclude_pushes(agent.id):
            with mark_agent(self._assignments.held, agent.id):
                await operation.guard(lambda c: agents.set_state(c, agent.id, AgentState.STARTING))
                await source.stop(agent.id)
                await self._relays.close(agent.id)
                await source.start(spec)
                await copy.run(is_final=True)
                await target.copy_repository(agent.id)
                await source.stop(agent.id)
                await target.release(agent.id)
                step = replace(step, phase=_TRY, tried=True)
                if not step.server:
                    return await self._record(operation, step, step.to)
            # Until the agent is the other server's, which the end of this attempt writes.
            self._assignments.held.add(agent.id)
            return step

    async def _try_target(self, operation: ClaimedOperation, step: _MoveStep) -> _MoveStep:
        agent = await self._runtimes.agents.get(operation.subject)
        try:
            await self._relays.close(agent.id)
            await self._start.start_agent(agent, new_container=True)
        except AgentNotFound:
            raise
        except Exception as error:  # noqa: BLE001 - the agent must run again after any error
            return await self._give_up(operation, step, error)
        step = replace(step, phase=_CLEAN, to=self._assignments.get_name(agent.id))

        def write(connection: Connection) -> None:
            work.update_payload(connection, operation, asdict(step), step.phase)
            set_agent_runtime(connection, agent.id, step.to)
            self._start.mark_running(connection, agent.id)

        await operation.guard(write)
        await self.targets.host_agents.forget_copy(agent.id)
        return step

    async def _give_up(self, operation: ClaimedOperation, step: _MoveStep, error: Exception) -> _MoveStep:
        reason = f"The agent was not moved to {step.place}: {public_reason(error)}"
        _log.warning("agent.move_reverted", agent=operation.subject, runtime=step.to, reason=reason)
        returned = replace(step, phase=_RETURN, reason=reason)
        if returned.host not in ("", self._own_id):  # before the agent leaves this server, nothing of it may run here
            await self._delete(self._assignments.get_name(operation.subject), operation.subject)
            await self.targets.delete_repository(operation.subject)
            await self.targets.host_agents.forget_copy(operation.subject)
            return returned
        return await self._record(operation, returned, step.source)

    async def _return(self, operation: ClaimedOperation, step: _MoveStep) -> None:
        """Start the agent in its old runtime, if it was stopped there, once nothing of it is left in the other one."""
        agent = await self._runtimes.agents.get(operation.subject)
        self._assignments.held.discard(agent.id)
        if not step.server:
            try:
                await self._delete(step.to, agent.id)
            except _NotDeleted:
                if step.tried:  # its gateway may still run there
                    raise
        elif not step.tried:
            await self._discard(step, agent.id)
        if agent.state is AgentState.RUNNING:
            return
        try:
            await self._relays.close(agent.id)
            await self._start.start_agent(agent, new_container=True)
        except AgentNotFound:
            raise
        except Exception as error:
            reason = f"{step.reason}\nThe start in {step.source} failed too: {public_reason(error)}"
            await operation.guard(lambda c: self._runtimes.agents.set_state(c, agent.id, AgentState.FAILED, reason))
            raise
        await operation.guard(lambda connection: self._start.mark_running(connection, agent.id))

    async def _record(self, operation: ClaimedOperation, step: _MoveStep, runtime: str) -> _MoveStep:
        """Record the step and the agent's runtime in one transaction."""

        def write(connection: Connection) -> None:
            work.update_payload(connection, operation, asdict(step), step.phase)
            set_agent_runtime(connection, operation.subject, runtime)

        await operation.guard(write)
        self._assignments.assign(operation.subject, runtime)
        return step

    async def _delete(self, runtime: str, agent_id: str) -> None:
        """Remove what another runtime keeps of an agent. Raises _NotDeleted for another attempt."""
        try:
            await self._assignments.get_runtime(runtime).delete(agent_id)
        except Exception as error:
            reason = error.message if isinstance(error, Problem) else repr(error)
            _log.warning("container.delete_failed", agent=agent_id, runtime=runtime, reason=reason)
            raise _NotDeleted(f"The runtime {runtime} has not removed its copy yet: {public_reason(error)}") from error

    async def _discard(self, step: _MoveStep, agent_id: str) -> None:
        """Remove the copy of an agent that is not in the new place; another server does it at its next start, too."""
        if not step.server:
            await self._delete(step.source if self._assignments.get_name(agent_id) == step.to else step.to, agent_id)
            return
        try:
            async with self.targets.open_target(step.to, step.server) as target:
                await target.discard(agent_id)
        except Problem as problem:
            _log.warning("copy.discard_failed", agent=agent_id, server=step.server, reason=problem.message)


def _warden(runtime: Runtime, agent: Agent) -> WardenClient:
    return WardenClient(lambda: runtime.connect(agent.id))
