"""OpenClaw's device pairing, over RPC.

Its gateway lets devices from its own loopback in unasked. That is nobody who comes through our edge, which tells each
client's address, and a public one for clients on this machine.
"""

from roost.drivers.engine import device_json as form
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.devices import DeviceAbility, DeviceList, DeviceRequestNotFound
from roost.drivers.engine.openclaw.rpc import OpenClawRpc, RpcRefused


class OpenClawDevices(DeviceAbility):
    def __init__(self, port: int) -> None:
        self._port = port

    async def list(self, inside: AgentContext) -> DeviceList:
        async with OpenClawRpc.open(inside.warden.dial, self._port, inside.token) as rpc:
            return form.book(await rpc.call("device.pair.list"))

    async def approve(self, inside: AgentContext, request_id: str) -> None:
        async with OpenClawRpc.open(inside.warden.dial, self._port, inside.token) as rpc:
            try:
                await rpc.call("device.pair.approve", {"requestId": request_id})
            except RpcRefused as refused:
                waiting = form.book(await rpc.call("device.pair.list")).pending
                if any(one.request_id == request_id for one in waiting):
                    raise
                raise DeviceRequestNotFound from refused
