"""The fake engine's devices, kept by its gateway (`fake_desk.py`)."""

from roost.drivers.engine import device_form as form
from roost.drivers.engine import http
from roost.drivers.engine.abilities.devices import Book, Devices, NoSuchRequest
from roost.drivers.engine.abilities.inside import Inside
from roost.drivers.engine.contract import EngineFailed


class FakeDevices(Devices):
    def __init__(self, port: int) -> None:
        self._port = port

    async def list(self, inside: Inside) -> Book:
        headers = {"Authorization": f"Bearer {inside.token.reveal()}"}
        return form.book(await http.get_json(inside.warden.dial, self._port, "/devices", headers))

    async def approve(self, inside: Inside, request_id: str) -> None:
        headers = {"Authorization": f"Bearer {inside.token.reveal()}"}
        order, body = "POST /devices/approve", {"requestId": request_id}
        status, _ = await http.send_json(inside.warden.dial, self._port, order, headers, body)
        if status == 404:
            raise NoSuchRequest
        if status != 200:
            raise EngineFailed(f"The gateway answered {status}")
