"""Deletion: hides the agent and revokes its token at once; an operation removes container, files and repository."""

import contextlib
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection

from roost import work
from roost.agents.library.skills.attachments import AgentSkillService
from roost.agents.lifecycle.workflows import model
from roost.agents.lifecycle.workflows.model import AgentDeleteFailed, AgentRelays
from roost.agents.network.domains.service import AgentDomainService
from roost.agents.network.routes.service import RouteService
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.errors import AgentOnOtherHost
from roost.agents.setup.channels.repository import ChannelRepository
from roost.agents.setup.secrets.service import SecretService
from roost.agents.workspace.snapshots.taking import remove_snapshots
from roost.core import clock, log
from roost.core.problem import Problem, ServiceUnavailable
from roost.drivers.git.contract import GitRepositories
from roost.identity.gateway_tokens import GatewayTokens
from roost.work import ClaimedOperation, Operation, OperationState, OperationWorker, Settlement
from roost.work.faults import forget_faults

_TIMEOUT_SECONDS = 60.0
_PAUSE = timedelta(hours=1)
_log = log.get_logger("lifecycle")


@dataclass(frozen=True)
class DeleteWorkflow:
    _queue: OperationWorker
    _runtimes: AgentRuntimes
    _tokens: GatewayTokens
    _relays: AgentRelays
    _git: GitRepositories
    _routes: RouteService
    _domains: AgentDomainService

    async def delete(self, agent_id: str) -> None:
        """Delete an agent and return when nothing is left of it.

        An agent whose server was removed has nothing else left. Raises AgentNotFound, AgentOnOtherHost,
        AgentDeleteFailed.
        """
        agent = await self._runtimes.agents.get(agent_id)
        if agent.host_id is not None:
            await self._runtimes.agents.get_here(agent_id)  # raises if it is on another server

        def mark_deleted(connection: Connection) -> str:
            self._runtimes.agents.mark_deleted(connection, agent_id)
            self._tokens.revoke(connection, agent_id)
            ChannelRepository.remove_all(connection, agent_id)
            SecretService.detach_all(connection, agent_id)
            AgentSkillService.detach_all(connection, agent_id)
            self._routes.remove_all(connection, agent_id)
            self._domains.remove_all(connection, agent)
            remove_snapshots(connection, agent_id)
            work.hasten_operations(connection, agent_id)
            return work.add_operation(connection, model.DELETE, agent_id, host=agent.host_id).id

        operation_id = await self._queue.db.write(mark_deleted)
        self._tokens.notify_changed(agent_id)
        with contextlib.suppress(Problem):  # the operation stops it again and reports a failure
            await self._runtimes.runtime.stop(agent_id, grace=0)  # aborts a running start at once
        operation = await self._queue.wait(operation_id, timeout=_TIMEOUT_SECONDS)
        if operation.state is not OperationState.DONE:
            raise AgentDeleteFailed

    async def handle(self, operation: ClaimedOperation) -> Settlement:
        """Handle `agent.delete`, idempotently; raises ServiceUnavailable for another attempt."""
        await self._relays.close(operation.subject)
        try:
            await self._runtimes.runtime.delete(operation.subject)
            await self._git.delete(operation.subject)
        except AgentOnOtherHost:  # which goes on with the operation
            raise
        except Problem as problem:
            raise ServiceUnavailable(problem.message) from problem
        return Settlement(lambda connection: self._finish(connection, operation))

    def try_later(self, connection: Connection, operation: Operation, reason: str) -> None:
        """Enqueue the deletion again: its agent is hidden, so that no request would."""
        _log.error("agent.delete_failed", agent=operation.subject, reason=reason)
        host, at = self._runtimes.agents.host_id, clock.utc_now() + _PAUSE
        work.add_operation(connection, model.DELETE, operation.subject, host=host, run_after=at)

    def _finish(self, connection: Connection, operation: ClaimedOperation) -> None:
        work.finish_operation(connection, operation, {})
        forget_faults(connection, operation.subject)
        self._runtimes.agents.purge(connection, operation.subject)
