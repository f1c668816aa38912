import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any

import pytest

from roost.net.errors import ConnectTimeout, NameNotResolved
from roost.net.resolver import SystemResolver


@contextmanager
def resolving(**options: Any) -> Iterator[SystemResolver]:
    resolver = SystemResolver(**options)
    try:
        yield resolver
    finally:
        resolver.close()


async def test_the_system_is_asked() -> None:
    with resolving() as resolver:
        found = await resolver.resolve("a1", "localhost")
    assert set(found) <= {ip_address("127.0.0.1"), ip_address("::1")}
    assert found


async def test_each_address_is_given_once_and_in_order() -> None:
    def lookup(*_: Any) -> list[Any]:
        return [
            (socket.AF_INET6, 1, 6, "", ("2606:4700::1", 0, 0, 0)),
            (socket.AF_INET, 1, 6, "", ("1.1.1.1", 0)),
            (socket.AF_INET, 2, 17, "", ("1.1.1.1", 0)),
        ]

    with resolving(lookup=lookup) as resolver:
        assert await resolver.resolve("a1", "x.example") == [ip_address("2606:4700::1"), ip_address("1.1.1.1")]


async def test_an_unknown_name() -> None:
    def lookup(*_: Any) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with resolving(lookup=lookup) as resolver:
        with pytest.raises(NameNotResolved) as caught:
            await resolver.resolve("a1", "nothing.example")
        assert caught.value.message == "nothing.example could not be resolved"


async def test_one_agent_whose_names_hang_does_not_keep_others_waiting() -> None:
    release, hanging = threading.Event(), []

    def lookup(host: bytes, *_: Any) -> list[Any]:
        if host.startswith(b"slow"):
            hanging.append(host)
            release.wait(30)
        return [(socket.AF_INET, 1, 6, "", ("1.1.1.1", 0))]

    with resolving(threads=3, per_subject=2, timeout=0.2, lookup=lookup) as resolver:
        try:
            slow = await asyncio.gather(
                *(resolver.resolve("bad", f"slow{n}.example") for n in range(20)), return_exceptions=True
            )
            assert all(isinstance(result, ConnectTimeout) for result in slow)
            assert len(hanging) == 2, "what nobody waits for any more still counts"
            assert await resolver.resolve("good", "fast.example") == [ip_address("1.1.1.1")]
            with pytest.raises(ConnectTimeout):
                await resolver.resolve("bad", "fast.example")
        finally:
            release.set()
        resumed = await resolve_with_retries(resolver, "bad", "fast.example")
        assert resumed == [ip_address("1.1.1.1")]


async def resolve_with_retries(resolver: SystemResolver, agent_id: str, host: str) -> Any:
    async with asyncio.timeout(10):
        while True:
            try:
                return await resolver.resolve(agent_id, host)
            except ConnectTimeout:
                continue
