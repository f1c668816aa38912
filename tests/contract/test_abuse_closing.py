"""Streams and WebSockets end within a second when what let them in goes: token, route, domain, agent (A8, G9)."""

import asyncio
import time
from collections.abc import AsyncIterator, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.contract.hosts import GATEWAY_KINDS, HANDSHAKE, PROGRAM_KINDS, HostsEnv, running_hosts

LIVE_KINDS = ("agent's platform paths", *GATEWAY_KINDS, *PROGRAM_KINDS)


@dataclass
class OpenStream:
    """A response without an end, or a WebSocket."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    ended_at: float | None = None

    async def watch(self) -> None:
        """Read to the end of the connection, or to the last chunk or close frame with which the platform ends one."""
        with suppress(ConnectionError):
            while data := await self.reader.read(1 << 16):
                if data.endswith(b"0\r\n\r\n") or b"\x88" in data:
                    break
        self.ended_at = time.monotonic()


@pytest.fixture
async def hosts_env(tmp_path: Path) -> AsyncIterator[HostsEnv]:
    async with running_hosts(tmp_path / "data") as hosts_env:
        yield hosts_env


async def open_live(hosts_env: HostsEnv, kind: str, *, websocket: bool) -> OpenStream:
    site = hosts_env.sites[kind]
    if kind == "agent's platform paths":
        path = "/v0/logs" if websocket else "/v0/files/watch"
    elif kind in GATEWAY_KINDS:
        path = "/ws" if websocket else "/slow?count=1000&every=0.05"
    else:
        path = "/ws" if websocket else "/ticks"
    reader, writer = await asyncio.open_connection("127.0.0.1", hosts_env.port)
    writer.write(site.head("GET {path}", *(HANDSHAKE if websocket else ()), path=path))
    async with asyncio.timeout(10):
        head = await reader.readuntil(b"\r\n\r\n")
    assert int(head.split()[1]) == (101 if websocket else 200), (kind, head)
    return OpenStream(reader, writer)


async def change(hosts_env: HostsEnv, name: str) -> float:
    """Make the change, and return the time of its answer: on a busy machine, the request itself takes seconds."""
    path = f"/v0/agents/{hosts_env.agent['agentId']}"
    if name == "rotation":
        await hosts_env.call(f"POST {path}/gateway-token/rotate")
    elif name == "deletion":
        await hosts_env.call(f"DELETE {path}")
    elif name == "routes":
        await hosts_env.call(f"PUT {path}/port-forwarding", {"mappings": []})
    else:
        host = hosts_env.sites[name].host.partition(":")[0]
        domains = (await hosts_env.call(f"GET {path}/domains"))["domains"]
        (found,) = [f"{path}/domains/{domain['id']}" for domain in domains if domain["domain"] == host]
        if name == "protected domain":  # it leads elsewhere from now on
            await hosts_env.call(f"PUT {found}", {"targetPort": 3001})
        else:
            await hosts_env.call(f"DELETE {found}")
    return time.monotonic()


@pytest.mark.parametrize(
    ("name", "ended"),
    [
        ("rotation", LIVE_KINDS),
        ("deletion", LIVE_KINDS),
        ("routes", ("protected route", "open route")),
        ("open domain", ("open domain",)),
        ("protected domain", ("protected domain",)),
        ("gateway's domain", ("gateway's domain",)),
    ],
)
async def test_opened_streams_end_with_their_reason(hosts_env: HostsEnv, name: str, ended: Collection[str]) -> None:
    live = {
        (kind, websocket): await open_live(hosts_env, kind, websocket=websocket)
        for kind in LIVE_KINDS
        for websocket in (False, True)
    }
    watching = [asyncio.create_task(one.watch()) for one in live.values()]
    expected = {key for key in live if key[0] in ended}
    changing = asyncio.create_task(change(hosts_env, name))
    try:
        async with asyncio.timeout(15):
            while {key for key, one in live.items() if one.ended_at is not None} < expected:
                await asyncio.sleep(0.01)
        changed_at = await changing
        seconds = {key: one.ended_at - changed_at for key, one in live.items() if one.ended_at is not None}
        assert seconds.keys() == expected
        assert max(seconds.values()) < 1, seconds
    finally:
        for task in watching:
            task.cancel()
        for one in live.values():
            one.writer.close()
