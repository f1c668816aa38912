"""An egress proxy on loopback, its log, and a raw client."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import structlog
from structlog.testing import LogCapture

from roost.agents.network.egress.proxy import EgressLimits, EgressProxy
from roost.net.dialer import PublicDialer
from roost.net.policy import EgressPolicy
from tests.net.loopback import OPEN, FakeResolver, serving, until

ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


@dataclass
class Proxy:
    port: int
    entries: list[Any]

    async def entry(self, count: int = 1) -> dict[str, Any]:
        """Return the log entry of the connection that ended as number `count`."""
        await until(lambda: len(self.entries) >= count)
        return self.entries[count - 1]

    async def send_raw(self, request: bytes) -> bytes:
        """Send bytes on one connection; return the whole response."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(request)
            async with asyncio.timeout(10):
                return await reader.read()
        finally:
            writer.transport.abort()


@asynccontextmanager
async def running_proxy(
    policy: EgressPolicy = OPEN,
    names: FakeResolver | None = None,
    limits: EgressLimits | None = None,
    agent_id: str = "a1",
) -> AsyncIterator[Proxy]:
    captured = LogCapture()
    log: Any = structlog.wrap_logger(
        None, processors=[captured], wrapper_class=structlog.make_filtering_bound_logger(0)
    )
    egress = EgressProxy(PublicDialer(policy, names or FakeResolver()), log=log, limits=limits or EgressLimits())

    async def handle_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await egress.serve(agent_id, reader, writer)

    async with serving(handle_connection) as port:
        yield Proxy(port, captured.entries)
