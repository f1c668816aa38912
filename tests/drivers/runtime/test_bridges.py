"""Bridges of a runtime: opened once, opened again, kept for relays."""

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from roost.core.machine.unix_socket import Stream
from roost.drivers.runtime import bridges
from roost.drivers.runtime.bridge import Bridge
from roost.drivers.runtime.bridges import Bridges
from roost.warden_client.errors import ContainerNotRunning
from tests.drivers.runtime.bridge_ends import BridgeEnds, frame

pytestmark = pytest.mark.anyio


class Wardens:
    """Opens carriers to ends that answer pings, or fails as often as `failures` says."""

    def __init__(self) -> None:
        self.opened: list[BridgeEnds] = []
        self.failures = 0
        self.bridges = Bridges(self._open_carrier)
        self.answering: list[asyncio.Task[None]] = []

    async def _open_carrier(self, agent_id: str, bridge: Bridge) -> None:
        if self.failures:
            self.failures -= 1
            raise ConnectionRefusedError
        ours, theirs = socket.socketpair()
        await asyncio.get_running_loop().create_connection(lambda: bridge, sock=ours)
        ends = BridgeEnds(bridge, *await asyncio.open_connection(sock=theirs))
        await asyncio.sleep(0)
        self.opened.append(ends)
        self.answering.append(asyncio.create_task(_answer(ends)))

    async def connect(self) -> Stream:
        return await self.bridges.connect("one")

    async def wait_for_carriers(self, number: int) -> None:
        async with asyncio.timeout(10):
            while len(self.opened) < number:
                await asyncio.sleep(0.01)


@pytest.fixture
async def wardens() -> AsyncIterator[Wardens]:
    made = Wardens()
    yield made
    await made.bridges.drop("one")
    for ends in made.opened:
        ends.writer.close()
    await asyncio.gather(*made.answering, return_exceptions=True)


async def _answer(ends: BridgeEnds) -> None:
    """Answer pings, and accept nothing else."""
    try:
        while True:
            kind, *_ = await ends.receive(None)
            if kind == b"p":
                await ends.send(frame(b"p", 0))
    except (asyncio.IncompleteReadError, ConnectionError, TimeoutError):
        return


async def test_many_at_once_open_one_carrier(wardens: Wardens) -> None:
    streams = await asyncio.gather(*(wardens.connect() for _ in range(20)))
    assert (len(wardens.opened), len({id(writer) for _, writer in streams})) == (1, 20)
    await wardens.bridges.drop("one")
    for reader, _ in streams:
        with pytest.raises(ConnectionResetError):
            await reader.read()


async def test_a_broken_carrier_is_opened_again_for_the_next_stream(wardens: Wardens) -> None:
    reader, _ = await wardens.connect()
    wardens.opened[0].writer.transport.abort()
    with pytest.raises(ConnectionResetError):
        await reader.read()
    _, writer = await wardens.connect()
    assert len(wardens.opened) == 2
    writer.close()
    await wardens.bridges.drop("one")


async def test_a_kept_bridge_is_opened_again_without_a_request(wardens: Wardens) -> None:
    wardens.failures = 3
    wardens.bridges.keep("one")
    await wardens.wait_for_carriers(1)
    wardens.opened[0].writer.transport.abort()
    await wardens.wait_for_carriers(2)
    await wardens.bridges.drop("one")
    assert wardens.opened[1].bridge.ended.done()


async def test_a_container_that_says_nothing_gets_another_carrier(
    wardens: Wardens, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridges, "_PING_SECONDS", 0.05)
    monkeypatch.setattr(bridges, "_ANSWER_SECONDS", 0.1)
    wardens.bridges.keep("one")
    await wardens.wait_for_carriers(1)
    await asyncio.sleep(0.3)
    assert len(wardens.opened) == 1  # it answers
    wardens.answering[0].cancel()
    await wardens.wait_for_carriers(2)
    await wardens.bridges.drop("one")


async def test_a_bridge_in_use_is_not_asked(wardens: Wardens, monkeypatch: pytest.MonkeyPatch) -> None:
    pings: list[object] = []
    ping = Bridge.ping
    monkeypatch.setattr(bridges, "_PING_SECONDS", 0.4)
    monkeypatch.setattr(Bridge, "ping", lambda bridge: pings.append(bridge) or ping(bridge))
    wardens.bridges.keep("one")
    await wardens.wait_for_carriers(1)
    async with asyncio.timeout(10):
        while not pings:  # of the opening
            await asyncio.sleep(0.01)
    for _ in range(20):
        (await wardens.connect())[1].close()
        await wardens.opened[0].send(frame(b"r", 1))
        await asyncio.sleep(0.05)
    assert len(pings) == 1
    await wardens.bridges.drop("one")


async def test_a_container_that_cannot_be_reached_does_not_run(wardens: Wardens) -> None:
    wardens.failures = 1
    with pytest.raises(ContainerNotRunning):
        await wardens.connect()


async def test_a_relay_that_was_replaced_is_not_closed_by_its_first_listener(wardens: Wardens) -> None:
    seen: list[str] = []

    def handler(name: str):
        async def handle(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            seen.append(name)
            writer.close()

        return handle

    first = await wardens.bridges.listen("one", "api", handler("first"))
    second = await wardens.bridges.listen("one", "api", handler("second"))
    first.close()
    await wardens.wait_for_carriers(1)
    await wardens.opened[-1].send(frame(b"o", 2, b"api"))
    async with asyncio.timeout(5):
        while not seen:
            await asyncio.sleep(0.01)
    assert seen == ["second"]
    second.close()
    await wardens.bridges.drop("one")


async def test_of_many_bridges_few_are_opened_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridges, "_AT_ONCE", 4)
    opening, opened, most = set[str](), set[str](), 0

    async def open_carrier(agent_id: str, _: Bridge) -> None:
        nonlocal most
        opening.add(agent_id)
        most = max(most, len(opening))
        await asyncio.sleep(0)
        opening.remove(agent_id)
        opened.add(agent_id)

    async def answer(_: Bridge) -> None:
        pass

    monkeypatch.setattr(Bridge, "ping", answer)
    made = Bridges(open_carrier)
    for number in range(50):
        made.keep(str(number))
    await asyncio.gather(*(made.connect(str(number)) for number in range(50, 100)), return_exceptions=True)
    async with asyncio.timeout(10):
        while len(opened) < 100:
            await asyncio.sleep(0)
    await made.close()
    assert most == 4
