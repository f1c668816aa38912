"""The fake engine's devices, kept by its gateway (`fake_admin_api.py`)."""

from roost.drivers.engine import device_json as form
from roost.drivers.engine import http
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.devices import DeviceAbility, DeviceList, DeviceRequestNotFound
from roost.drivers.engine.contract import EngineFailed


class FakeDevices(DeviceAbility):
    def __init__(self, port: int) -> None:
        self._port = port

    async def list(self, inside: AgentContext) -> DeviceList:
        headers = {"Authorization": f"Bearer {inside.token.reveal()}"}
        return form.book(await http.get_json(inside.warden.dial, self._port, "/devices", headers))

    async def approve(self, inside: AgentContext, request_id: str) -> None:
        headers = {"Authorization": f"Bearer {inside.token.reveal()}"}
        order, body = "POST /devices/approve", {"requestId": request_id}
        status, _ = await http.send_json(inside.warden.dial, self._port, order, headers, body)
        if status == 404:
            raise DeviceRequestNotFound
        if status != 200:
            raise EngineFailed(f"The gateway answered {status}")
