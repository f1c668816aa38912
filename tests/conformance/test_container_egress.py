"""Egress of a container: only through the proxy's socket, also for programs without proxy support."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from ipaddress import ip_address

from roost.drivers.runtime.contract import Runtime
from tests.conformance.containers import Start

PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n"
NO_PROXY = ["env", "-u", "http_proxy", "-u", "HTTP_PROXY", "-u", "ALL_PROXY"]


@asynccontextmanager
async def proxy(runtime: Runtime, agent_id: str) -> AsyncIterator[list[str]]:
    """Serve an HTTP CONNECT proxy on the agent's relay that answers as every host; yield the request lines."""
    requests: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        requests.append(head.split(b"\r\n")[0].decode())
        writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        writer.write(PAGE)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    with closing(await runtime.listen(agent_id, "proxy", serve)):
        yield requests


async def test_a_program_without_proxy_support_reaches_hosts_by_name(start: Start) -> None:
    container = await start("one", egress="proxy", relays={8798: "proxy"})
    async with proxy(container.runtime, "one") as requests:
        curl = await container.run(
            *NO_PROXY, "curl", "-sS", "-m", "10", "--retry", "5", "--retry-connrefused", "http://a.example/"
        )
        assert curl.stdout == b"hello\n", curl
        assert requests == ["CONNECT a.example:80 HTTP/1.1"]
        direct = await container.run(*NO_PROXY, "curl", "-sS", "-m", "5", "http://192.0.2.1/")
        assert direct.exit_code != 0
        assert len(requests) == 1


def resolve(name: str) -> str:
    """Return a program that tells the address of a name; the container's name server starts after its warden."""
    return f"""
import time
end = time.monotonic() + 10
while True:
    try:
        tell(socket.gethostbyname({name!r}))
        break
    except socket.gaierror:
        assert time.monotonic() < end
        time.sleep(0.05)
"""


async def test_names_have_public_addresses_for_programs_that_reject_others(start: Start) -> None:
    container = await start("one", egress="proxy", relays={8798: "proxy"})
    async with proxy(container.runtime, "one") as requests:
        address = await container.run_python(resolve("guarded.example"))
        assert ip_address(address).is_global
        pinned = (
            "--resolve",
            f"guarded.example:80:{address}",
        )  # as programs do that check an address before they connect to it
        curl = await container.run(*NO_PROXY, "curl", "-sS", "-m", "10", *pinned, "http://guarded.example/")
        assert curl.stdout == b"hello\n", curl
        assert requests == ["CONNECT guarded.example:80 HTTP/1.1"]


async def test_an_address_without_a_name_leads_nowhere(start: Start) -> None:
    container = await start("one", egress="proxy", relays={8798: "proxy"})
    async with proxy(container.runtime, "one") as requests:
        address = await container.run_python(resolve("a.example"))
        unused = address.rpartition(".")[0] + ".250"
        received = await container.run_python(
            f"s = socket.create_connection(({unused!r}, 80), 10); tell(len(s.recv(9)))"
        )
        refused = await container.run_python(
            f"tell(socket.socket().connect_ex(({unused!r}, 81)) == errno.ECONNREFUSED)"
        )
        unreachable = await container.run_python(
            "tell(socket.socket().connect_ex(('29.77.0.1', 80)) == errno.ENETUNREACH)"
        )
        assert (received, refused, unreachable) == (0, True, True)
        assert not requests


async def test_a_program_with_proxy_support_uses_it(start: Start) -> None:
    container = await start("one", egress="proxy", relays={8798: "proxy"})
    async with proxy(container.runtime, "one") as requests:
        curl = await container.run(
            "curl", "-sS", "-m", "10", "-p", "-x", "http://127.0.0.1:8798", "http://b.example:81/"
        )
        assert curl.stdout == b"hello\n", curl
        assert requests == ["CONNECT b.example:81 HTTP/1.1"]


async def test_without_egress_no_name_resolves(start: Start) -> None:
    container = await start()
    assert (await container.run("curl", "-sS", "-m", "10", "http://a.example/")).exit_code == 6


async def test_two_containers_can_use_the_same_port(start: Start) -> None:
    one, two = await start("one"), await start("two")
    for container in (one, two):
        await container.warden.start("web", ["python3", "-m", "http.server", "8080", "--bind", "127.0.0.1"], env={})
    fetch = "curl -sS -m 10 --retry 20 --retry-delay 1 --retry-connrefused http://127.0.0.1:8080/mine"
    await one.warden.write("mine", b"of one")
    assert await one.sh(fetch) == "of one"
    assert "404" in await two.sh(fetch)
