"""OpenClaw's device pairing, over RPC.

The gateway pairs devices from its own loopback without approval. Devices that come through our edge are never such
devices: it sends each client's address, and a public one for clients on this machine.
"""

from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.devices import DeviceAbility, DeviceList, DeviceRequestNotFound
from roost.drivers.engine.gateway_json import parse_device_list
from roost.drivers.engine.openclaw.rpc import OpenClawRpc, RpcRefused


class OpenClawDevices(DeviceAbility):
    async def list(self, agent: AgentContext) -> DeviceList:
        async with OpenClawRpc.open(agent.warden.dial, agent.token) as rpc:
            return parse_device_list(await rpc.call("device.pair.list"))

    async def approve(self, agent: AgentContext, request_id: str) -> None:
        async with OpenClawRpc.open(agent.warden.dial, agent.token) as rpc:
            try:
                await rpc.call("device.pair.approve", {"requestId": request_id})
            except RpcRefused as refused:
                waiting = parse_device_list(await rpc.call("device.pair.list")).pending
                if any(one.request_id == request_id for one in waiting):
                    raise
                raise DeviceRequestNotFound from refused
