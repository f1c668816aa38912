"""Teardown: an agent is hidden and its token dead at once; container and files follow, whatever crashes in between."""

import contextlib
from typing import Any

from sqlalchemy import Connection

from roost import work
from roost.agents.channels.repository import ChannelRepository
from roost.agents.lifecycle import model
from roost.agents.lifecycle.errors import AgentDeleteFailed
from roost.agents.lifecycle.model import AgentRelays
from roost.agents.registry.repository import AgentRepository
from roost.agents.secrets.service import SecretService
from roost.core.db import Database
from roost.core.problem import Problem, ServiceUnavailable
from roost.drivers.runtime.contract import Runtime
from roost.identity.gateway_tokens import GatewayTokens
from roost.work import ClaimedOperation, OperationState, OperationWorker

_DEADLINE = 60.0


class DeleteWorkflow:
    def __init__(
        self,
        db: Database,
        queue: OperationWorker,
        roster: AgentRepository,
        gateways: GatewayTokens,
        runtime: Runtime,
        relays: AgentRelays,
    ) -> None:
        self._db = db
        self._queue = queue
        self._roster = roster
        self._gateways = gateways
        self._runtime = runtime
        self._relays = relays

    async def delete(self, agent_id: str) -> None:
        """Returns when nothing is left of the agent. Raises AgentNotFound, DeleteFailed."""

        def dismiss(connection: Connection) -> str:
            self._roster.mark_deleted(connection, agent_id)
            self._gateways.revoke(connection, agent_id)
            ChannelRepository.remove_all(connection, agent_id)
            SecretService.detach_all(connection, agent_id)
            return work.add_operation(connection, model.DELETE, agent_id).id

        operation_id = await self._db.write(dismiss)
        self._gateways.notify_changed(agent_id)
        self._queue.wake()
        with contextlib.suppress(Problem):  # what does not end is the operation's to deal with, and to tell of
            await self._runtime.stop(agent_id, grace=0)  # a start under way gives up at once
        operation = await self._queue.wait(operation_id, timeout=_DEADLINE)
        if operation.state is not OperationState.DONE:
            raise AgentDeleteFailed

    async def handle(self, operation: ClaimedOperation) -> dict[str, Any]:
        """`agent.delete`, idempotent. What does not work now is tried again later."""
        await self._relays.close(operation.subject)
        try:
            await self._runtime.delete(operation.subject)
        except Problem as problem:
            raise ServiceUnavailable(problem.message) from problem
        await operation.guard(lambda connection: self._roster.purge(connection, operation.subject))
        return {}
