"""Devices of an agent, which its engine stores."""

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.core import log
from roost.core.db import Database, DataChange, write_change
from roost.core.problem import NotFound
from roost.drivers.engine.abilities.devices import DeviceList, DeviceRequestNotFound
from roost.drivers.engine.contract import EngineFailed
from roost.warden_client.errors import ContainerNotRunning, DialRefused, WardenFailed

_REQUEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
_log = log.get_logger("devices")


class DevicesUnsupported(NotFound):
    """The agent's engine has no device pairing, so it has no requests."""

    message = "This agent's engine has no device pairing"


class DeviceService:
    def __init__(self, db: Database, runtimes: AgentRuntimes) -> None:
        self._db = db
        self._runtimes = runtimes

    async def list(self, agent_id: str) -> DeviceList | None:
        """List devices, or return None if the engine has no pairing. Raises AgentNotFound, EngineFailed."""
        engine, context = await self._runtimes.get_context(agent_id)
        if engine.devices is None:
            return None
        async with _engine_failures(agent_id):
            return await engine.devices.list(context)

    async def approve(self, agent_id: str, request_id: str) -> None:
        """Approve one request. Raises AgentNotFound, DeviceRequestNotFound, DevicesUnsupported, EngineFailed."""
        engine, context = await self._runtimes.get_context(agent_id)
        if engine.devices is None:
            raise DevicesUnsupported
        if not _REQUEST_ID.fullmatch(request_id):  # such a text is never sent to an engine
            raise DeviceRequestNotFound
        async with _engine_failures(agent_id):
            await engine.devices.approve(context, request_id)
        await write_change(
            self._db, DataChange("device", "changed", request_id, agent_id=agent_id, data={"action": "approved"})
        )

    async def approve_all(self, agent_id: str) -> tuple[Sequence[str], Sequence[tuple[str, str]]]:
        """Approve the requests that are pending at the call; return their ids, and those of others with the error.

        Raises AgentNotFound, EngineFailed.
        """
        devices = await self.list(agent_id)
        approved: list[str] = []
        failed: list[tuple[str, str]] = []
        pending = [one.request_id for one in devices.pending] if devices else []
        for request_id in pending:
            try:
                await self.approve(agent_id, request_id)
                approved.append(request_id)
            except DeviceRequestNotFound as gone:
                failed.append((request_id, gone.message))
            except EngineFailed as failure:  # the remaining requests would fail too, each after a timeout
                failed += [(one, failure.message) for one in pending[len(approved) + len(failed) :]]
                break
        return approved, failed


@asynccontextmanager
async def _engine_failures(agent_id: str) -> AsyncGenerator[None]:
    """Convert every failure to reach the engine into EngineFailed; log the reason for the operator."""
    try:
        yield
    except (EngineFailed, DialRefused, ContainerNotRunning, WardenFailed) as problem:
        _log.warning("device.request_failed", agent=agent_id, reason=problem.message)
        raise EngineFailed from problem
