"""Devices of an agent, as its engine knows them: nothing about them is kept here."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from roost.agents.devices import model
from roost.agents.devices.errors import DevicesUnsupported
from roost.agents.devices.model import DeviceApprovals, FailedDeviceApproval
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.core import log
from roost.drivers.engine.abilities.devices import DeviceList, DeviceRequestNotFound
from roost.drivers.engine.contract import EngineFailed
from roost.drivers.runtime.contract import ContainerNotRunning
from roost.drivers.runtime.warden_client import DialRefused, WardenFailed

_log = log.get_logger("devices")


class DeviceService:
    def __init__(self, reach: AgentRuntimes) -> None:
        self._reach = reach

    async def list(self, agent_id: str) -> DeviceList | None:
        """None when the agent's engine has no devices. Raises AgentGone, EngineFailed."""
        engine, inside = await self._reach.get_context(agent_id)
        if engine.devices is None:
            return None
        async with _engine_failures(agent_id):
            return await engine.devices.list(inside)

    async def approve(self, agent_id: str, request_id: str) -> None:
        """Raises AgentGone, NoSuchRequest, NoDevices, EngineFailed."""
        engine, inside = await self._reach.get_context(agent_id)
        if engine.devices is None:
            raise DevicesUnsupported
        if not model.is_request_id(request_id):
            raise DeviceRequestNotFound
        async with _engine_failures(agent_id):
            await engine.devices.approve(inside, request_id)

    async def approve_all(self, agent_id: str) -> DeviceApprovals:
        """Approve what is pending now, and nothing that comes meanwhile. Raises AgentGone, EngineFailed."""
        book = await self.list(agent_id)
        approved: list[str] = []
        failed: list[FailedDeviceApproval] = []
        waiting = [one.request_id for one in book.pending] if book else []
        for request_id in waiting:
            try:
                await self.approve(agent_id, request_id)
                approved.append(request_id)
            except DeviceRequestNotFound as gone:
                failed.append(FailedDeviceApproval(request_id, gone.message))
            except EngineFailed as end:  # the others would wait for it in vain, one after the other
                left = waiting[len(approved) + len(failed) :]
                return DeviceApprovals(approved, [*failed, *(FailedDeviceApproval(one, end.message) for one in left)])
        return DeviceApprovals(approved, failed)


@asynccontextmanager
async def _engine_failures(agent_id: str) -> AsyncGenerator[None]:
    """An engine that gives no answer, for whatever reason, has failed; the reason is the operator's to read."""
    try:
        yield
    except (EngineFailed, DialRefused, ContainerNotRunning, WardenFailed) as problem:
        _log.warning("no answer about devices", agent=agent_id, reason=problem.message)
        raise EngineFailed from problem
