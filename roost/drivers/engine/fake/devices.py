"""The fake engine's devices, which its gateway stores (`admin_api.py`)."""

from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.devices import DeviceAbility, DeviceList, DeviceRequestNotFound
from roost.drivers.engine.device_json import parse_device_list
from roost.drivers.engine.gateway_http import send_json


class FakeDevices(DeviceAbility):
    def __init__(self, port: int) -> None:
        self._port = port

    async def list(self, agent: AgentContext) -> DeviceList:
        return parse_device_list((await send_json(agent.warden.dial, self._port, "GET /devices", agent.token))[1])

    async def approve(self, agent: AgentContext, request_id: str) -> None:
        request, body = "POST /devices/approve", {"requestId": request_id}
        status, _ = await send_json(agent.warden.dial, self._port, request, agent.token, body, expected=(200, 404))
        if status == 404:
            raise DeviceRequestNotFound
