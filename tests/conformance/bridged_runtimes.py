"""Fake runtimes that reach their wardens through bridges, as runtimes on other machines do."""

import asyncio
import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from roost.core.machine import unix_socket
from roost.core.machine.unix_socket import Stream, StreamHandler
from roost.core.sensitive import Sensitive
from roost.drivers.runtime.bridge import Bridge
from roost.drivers.runtime.bridges import Bridges
from roost.drivers.runtime.contract import Container, ContainerSpec, RelayListener
from roost.drivers.runtime.fake import FakeRuntime
from roost.drivers.runtime.tls_carrier import make_bridge_certificate, make_bridge_context


class BridgedFakeRuntime(FakeRuntime):
    """Fake runtime that reaches its wardens through bridges only, as a runtime on another machine does."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.bridges = Bridges(self._open_carrier)

    async def _start(self, spec: ContainerSpec) -> Container:
        await self.bridges.drop(spec.agent_id)  # of a container that ended by itself
        started = await super()._start(spec)
        self.bridges.keep(spec.agent_id)
        return started

    async def stop(self, agent_id: str, grace: float = 5.0) -> None:
        await super().stop(agent_id, grace)
        await self.bridges.drop(agent_id)

    async def list(self) -> Sequence[Container]:
        found = await super().list()
        for container in found:
            self.bridges.keep(container.agent_id)
        return found

    async def connect(self, agent_id: str) -> Stream:
        return await self.bridges.connect(agent_id)

    async def listen(self, agent_id: str, relay: str, handler: StreamHandler) -> RelayListener:
        return await self.bridges.listen(agent_id, relay, handler)

    def _config(self, spec: ContainerSpec) -> Mapping[str, Any]:
        relays = {str(port): name for port, name in spec.relays.items()}
        return {**super()._config(spec), "bridge": {"uid": os.getuid()}, "relays": relays, "egress": spec.egress}

    async def _open_carrier(self, agent_id: str, bridge: Bridge) -> None:
        sock = await unix_socket.open_unix_socket(self._paths.socket(agent_id))
        await asyncio.get_running_loop().create_unix_connection(lambda: bridge, sock=sock)


class TlsFakeRuntime(BridgedFakeRuntime):
    """The same over TLS, where the wardens have files with their certificates."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._certificates = folder / "certificates"
        self.certificates: dict[str, str] = {}
        """Those that a test has given to agents."""
        self.limits: dict[str, Mapping[str, int]] = {}
        """Limits that wardens set for agents."""

    def _config(self, spec: ContainerSpec) -> Mapping[str, Any]:
        self._certificates.mkdir(exist_ok=True)
        path = self._certificates / spec.agent_id
        path.write_text(self.certificates.get(spec.agent_id) or make_bridge_certificate(spec.agent_id).reveal())
        limits = self.limits.get(spec.agent_id)
        return {**super()._config(spec), "bridge": {"certificate": str(path)}, "limits": limits}

    def is_running(self, agent_id: str) -> bool:
        """Return whether a container runs, without a look at all processes of the machine."""
        return self._load_record(agent_id) is not None

    async def open_socket(self, agent_id: str) -> socket.socket:
        """Open a connection to the socket at which the warden accepts carriers."""
        return await unix_socket.open_unix_socket(self._paths.socket(agent_id))

    async def _open_carrier(self, agent_id: str, bridge: Bridge) -> None:
        sock = await self.open_socket(agent_id)
        context = make_bridge_context(Sensitive((self._certificates / agent_id).read_text()))
        loop = asyncio.get_running_loop()
        await loop.create_unix_connection(lambda: bridge, sock=sock, ssl=context, server_hostname=agent_id)
