"""Carrier of a bridge through a command that the Docker Engine runs in the container."""

import asyncio
import struct
from typing import cast

from roost.drivers.runtime.bridge import Bridge
from roost.drivers.runtime.docker import plan
from roost.drivers.runtime.docker.engine_api import CONFLICT, MISSING, EngineApi, EngineRefused
from roost.warden_client.errors import ContainerNotRunning

_HEADER = struct.Struct("!BxxxI")
_STDOUT = 1


async def open_exec_carrier(api: EngineApi, container: str, bridge: Bridge) -> None:
    """Make a bridge the protocol of a new carrier. Raises ContainerNotRunning and the errors of EngineApi."""
    command = {
        "AttachStdin": True,
        "AttachStdout": True,
        "User": f"{plan.CARRIER_USER}:{plan.CARRIER_USER}",
        "Cmd": [*plan.PYTHON, f"{plan.WARDEN}/bridge_carrier.py", plan.BRIDGE],
    }
    try:
        prepared = await api.call("POST", f"/containers/{container}/exec", command)
        reader, writer = await api.attach(prepared["Id"])
    except EngineRefused as error:
        if error.status in (MISSING, CONFLICT):
            raise ContainerNotRunning from None
        raise
    transport = cast("asyncio.Transport", writer.transport)
    protocol = _ExecOutput(bridge, writer)
    transport.set_protocol(protocol)
    bridge.connection_made(transport)
    reader.feed_eof()
    if early := await reader.read():  # what came with the head of the answer
        protocol.data_received(early)


class _ExecOutput(asyncio.Protocol):
    """Takes off the frames in which the engine sends the output of a command without a terminal."""

    def __init__(self, bridge: Bridge, writer: asyncio.StreamWriter) -> None:
        self._bridge, self._writer = bridge, writer  # a writer that is collected closes its transport
        self._header = bytearray()
        self._stream = self._left = 0  # of the frame that is being received

    def data_received(self, data: bytes) -> None:
        output: list[bytes] = []
        at = 0
        while at < len(data):
            if self._left:
                part = data[at : at + self._left]
                self._left -= len(part)
                if self._stream == _STDOUT:
                    output.append(part)
            else:
                part = data[at : at + _HEADER.size - len(self._header)]
                self._header += part
                if len(self._header) == _HEADER.size:
                    self._stream, self._left = _HEADER.unpack(self._header)
                    self._header.clear()
            at += len(part)
        if output:
            self._bridge.data_received(b"".join(output))

    def eof_received(self) -> None:
        self._bridge.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._bridge.connection_lost(exc)

    def pause_writing(self) -> None:
        self._bridge.pause_writing()

    def resume_writing(self) -> None:
        self._bridge.resume_writing()
