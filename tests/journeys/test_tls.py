"""A server on the internet: HTTPS by Caddy, certificates of a real ACME server on loopback, a real curl."""

import asyncio
import json
import os
import random
import signal
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from roost.app.domain_services import build_certificate_checker
from roost.drivers.tls_proxy.caddy import CaddyProxy
from tests.journeys.server_process import until, up
from tests.platforms.tls import Authority
from tests.support.acme import AcmeServer, Reply, connect, curl
from tests.support.server import RunningServer, running

pytestmark = [pytest.mark.container]

DOMAIN = "roost.test"
MANAGEMENT = f"https://agents.{DOMAIN}"
BROWSER = ("-H", "Accept: text/html", "-H", "Sec-Fetch-Mode: navigate")
UPGRADE = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n"
)
REFUSED = 35
"""Exit code of curl: the handshake failed."""


@pytest.fixture
async def server(acme: AcmeServer, tmp_path: Path) -> AsyncIterator[RunningServer]:
    async with running(tmp_path / "data", ROOST_DOMAIN=DOMAIN, **acme.settings) as server:
        yield server


async def get(acme: AcmeServer, url: str, *options: str, **more: int) -> Reply:
    return await asyncio.to_thread(curl, acme, url, *options, **more)


async def test_browsers_get_https_of_every_version(acme: AcmeServer, server: RunningServer) -> None:
    for option, version in (("--http1.1", "HTTP/1.1"), ("--http2", "HTTP/2"), ("--http3-only", "HTTP/3")):
        reply = await get(acme, f"{MANAGEMENT}/healthz", option)
        assert (reply.version, reply.status, reply.body) == (version, 200, '{"status":"ok"}'), reply
        assert reply.headers["strict-transport-security"] == "max-age=31536000; includeSubDomains"
        assert reply.headers["alt-svc"] == f'h3=":{acme.tls_port}"; ma=2592000'
        assert not {"server", "via"} & reply.headers.keys()
    moved = await get(acme, f"http://agents.{DOMAIN}/v0/agents?x=%2F", port=acme.http_port)
    assert (moved.status, moved.headers["location"]) == (308, f"{MANAGEMENT}:{acme.tls_port}/v0/agents?x=%2F")
    assert server.roost.core.addresses.agents_url == f"{MANAGEMENT}:{acme.tls_port}"


async def test_an_agent_is_served_on_its_own_name(acme: AcmeServer, server: RunningServer) -> None:
    management = server.client(server.key(), f"agents.{DOMAIN}")
    agent = (await management.post("/v0/agents", json={"name": "a"})).json()["agent"]
    host = f"{agent['agentId']}.agents.{DOMAIN}"
    token = f"Authorization: Bearer {agent['gatewayToken']}"
    echo = await get(acme, f"https://{host}/echo", "-H", token, "-H", "X-Forwarded-For: 203.0.113.9")
    headers = {name.lower(): value for name, value in json.loads(echo.body)["headers"]}
    assert headers["x-forwarded-proto"] == "https"
    assert headers["x-forwarded-for"] == "192.0.0.8", "a client on loopback; what it says of itself counts for nothing"
    uploaded = await get(
        acme, f"https://{host}/echo", "-H", token, "-H", "Expect: 100-continue", "-d", "x" * 5000, "--http1.1"
    )
    assert json.loads(uploaded.body)["body"] == "x" * 5000
    refused = await get(acme, f"https://{host}/echo", "-H", "Expect: 100-continue", "-d", "x" * 5000, "--http1.1")
    assert refused.status == 401
    (acme.folder / "large").write_bytes(bytes(50 * 1024**2))
    large = ("--data-binary", f"@{acme.folder}/large", "--http1.1", "-H", "Expect:")
    assert (await get(acme, f"https://{host}/echo", *large)).status == 401, "before its body was read"
    head = f"GET /v0/logs HTTP/1.1\r\nHost: {host}\r\n{token}\r\n{UPGRADE}\r\n"
    logs, writer = await connect(acme, host, acme.ca.read_bytes())
    writer.write(head.encode())
    assert (await logs.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101"), "a WebSocket of the platform itself"
    writer.close()
    link = (await management.post(f"/v0/agents/{agent['agentId']}/sign-in-link")).json()["url"]
    signed_in = await get(acme, link.replace(f":{acme.tls_port}", ""), *BROWSER)
    assert signed_in.headers["set-cookie"].endswith("; Path=/; HttpOnly; SameSite=Lax; Secure"), signed_in


async def test_a_certificate_of_the_operator_is_replaced_under_live_streams(acme: AcmeServer, tmp_path: Path) -> None:
    first, second = Authority("first"), Authority("second")
    pem = tmp_path / "agents.pem"
    pem.write_bytes(first.issue(f"*.agents.{DOMAIN}"))
    files: dict[str, Any] = {"ROOST_TLS_CERTIFICATE": str(pem), "ROOST_TLS_KEY": str(pem)}
    async with running(tmp_path / "data", ROOST_DOMAIN=DOMAIN, **acme.settings | files) as server:
        management = server.client(server.key(), f"agents.{DOMAIN}")
        agent = (await management.post("/v0/agents", json={"name": "a"})).json()["agent"]
        host = f"{agent['agentId']}.agents.{DOMAIN}"
        head = f"GET %s HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {agent['gatewayToken']}\r\n%s\r\n"
        chat, stream = [await connect(acme, host, first.certificate) for _ in range(2)]
        chat[1].write((head % ("/ws", UPGRADE)).encode())
        assert (await chat[0].readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101")
        stream[1].write((head % ("/slow?every=0.5&count=12", "")).encode())
        assert (await stream[0].readuntil(b"\n0\n\r\n")).startswith(b"HTTP/1.1 200"), "before the second chunk exists"
        pem.write_bytes(second.issue(f"*.agents.{DOMAIN}"))
        await eventually(lambda: shakes_hands(acme, host, second.certificate))
        pem.write_text("damaged")
        chat[1].write(b"\x81\x85\0\0\0\0hello")
        assert await chat[0].readexactly(7) == b"\x81\x05hello"
        assert b"11\n" in await stream[0].readuntil(b"\r\n0\r\n\r\n")
        assert await shakes_hands(acme, host, second.certificate), "a damaged file replaces nothing"
        for _, writer in (chat, stream):
            writer.close()


async def test_a_request_ends_when_its_client_leaves(acme: AcmeServer, server: RunningServer) -> None:
    management = server.client(server.key(), f"agents.{DOMAIN}")
    agent = (await management.post("/v0/agents", json={"name": "a"})).json()["agent"]
    host = f"{agent['agentId']}.agents.{DOMAIN}"
    reader, writer = await connect(acme, host, acme.ca.read_bytes())
    token = f"Authorization: Bearer {agent['gatewayToken']}"
    writer.write(f"GET /slow?every=60&count=2 HTTP/1.1\r\nHost: {host}\r\n{token}\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    connections = server.roost.http.server_state.connections
    before = len(connections)
    writer.transport.abort()

    async def is_gone() -> bool:
        return len(connections) < before

    await eventually(is_gone)


async def test_only_names_that_are_served_get_a_certificate(acme: AcmeServer, server: RunningServer) -> None:
    orders = acme.count_orders()
    names = [f"{number}.evil.example" for number in range(100)] + [
        f"a{number:015}.agents.{DOMAIN}" for number in range(20)
    ]
    gateway = f"bafkreia.ipfs.x.gateways.{DOMAIN}"
    for name in [*names, gateway, f"none.gateways.{DOMAIN}", "localhost", "other.test"]:
        assert not await shakes_hands(acme, name, acme.ca.read_bytes())
    assert acme.count_orders() == orders
    for host in ("other.test", f"api.{DOMAIN}", "localhost"):
        assert (await get(acme, f"{MANAGEMENT}/healthz", "-H", f"Host: {host}")).status == 421
    assert (await server.client(host="localhost").get("/tls/permission?domain=x")).status_code == 403
    asked_by_others = await get(acme, f"{MANAGEMENT}/tls/permission?domain=agents.{DOMAIN}")
    assert asked_by_others.status == 404


async def test_a_failure_of_the_acme_server_is_explained(acme: AcmeServer, server: RunningServer) -> None:
    name = f"uploads.{DOMAIN}"
    checker = build_certificate_checker(server.roost.core, server.roost.domains.tls_proxy)
    assert checker is not None
    assert await checker.check(f"agents.{DOMAIN}") is None
    acme.set_address(name, "127.0.0.9")
    reason = await checker.check(name)
    assert reason is not None
    assert reason.startswith(f"There is no certificate for {name}: the ACME server could not reach {name} on port 80: ")
    orders = acme.count_orders()
    again = await checker.check(name)
    assert again is not None
    assert again.startswith(f"{reason}. The next attempt is in "), again
    assert acme.count_orders() == orders
    acme.clear_address(name)


async def test_a_domain_of_a_tenant_from_its_registration_to_its_removal(acme: AcmeServer, tmp_path: Path) -> None:
    dns = f"127.0.0.1:{acme.dns_port}"
    async with running(tmp_path / "data", ROOST_DOMAIN=DOMAIN, ROOST_DNS_SERVERS=dns, **acme.settings) as server:
        management = server.client(server.key(), f"agents.{DOMAIN}")
        agent = (await management.post("/v0/agents", json={"name": "a"})).json()["agent"]
        domains = f"/v0/agents/{agent['agentId']}/domains"

        async def register(name: str) -> str:
            challenge = (await management.post(f"{domains}/challenge", json={"customDomain": name})).json()
            acme.set_text(challenge["name"], challenge["value"])
            return (await management.post(domains, json={"customDomain": name})).json()["domain"]["id"]

        page = ("https://app.example.com/echo", "-H", f"Authorization: Bearer {agent['gatewayToken']}")
        own, elsewhere = await register("app.example.com"), await register("elsewhere.example.com")
        assert (await get(acme, *page)).code == REFUSED
        verified = (await management.post(f"{domains}/{own}/verify")).json()["domain"]
        assert (verified["status"], verified["reason"]) == ("active", None)
        assert verified["url"].startswith("https://app.example.com:")
        served = await get(acme, *page)
        assert (served.status, served.headers["strict-transport-security"]) == (200, "max-age=31536000")
        acme.set_address("elsewhere.example.com", "127.0.0.9")
        pending = (await management.post(f"{domains}/{elsewhere}/verify")).json()["domain"]
        assert pending["status"] == "pending"
        assert "the ACME server could not reach elsewhere.example.com on port 80: " in pending["reason"]
        await management.delete(f"{domains}/{own}")
        await eventually(lambda: is_refused(acme, *page))
        again = await register("app.example.com")
        assert (await management.post(f"{domains}/{again}/verify")).json()["domain"]["status"] == "active"
        assert (await get(acme, *page)).status == 200


async def test_caddy_is_started_again(acme: AcmeServer, server: RunningServer) -> None:
    assert (await get(acme, f"{MANAGEMENT}/healthz")).status == 200
    orders, proxy = acme.count_orders(), server.roost.domains.tls_proxy
    assert isinstance(proxy, CaddyProxy)
    assert proxy.pid is not None
    os.kill(proxy.pid, signal.SIGKILL)
    reply = await get(acme, f"{MANAGEMENT}/healthz")  # the connection waits in the socket, which the server holds
    assert (reply.status, acme.count_orders()) == (200, orders)


def test_a_killed_server_leaves_no_caddy_and_the_next_one_has_its_certificates(
    acme: AcmeServer, tmp_path: Path
) -> None:
    flags = ("--tls", "--domain", DOMAIN, "--no-first-agent")
    with up(tmp_path / "data", *flags, **acme.settings) as server:
        assert curl(acme, f"{MANAGEMENT}/healthz").status == 200
        assert f"{MANAGEMENT}:{acme.tls_port}/v0" in server.text()
        orders = acme.count_orders()
        server.kill()
        until(lambda: not is_listening(acme.tls_port))
        server.start()
        assert (curl(acme, f"{MANAGEMENT}/healthz").status, acme.count_orders()) == (200, orders)
        modes = {path.name: oct(path.stat().st_mode & 0o777) for path in (tmp_path / "data/tls").iterdir()}
        assert {modes[name] for name in ("certificates", "caddy.json", "admin.sock", "roost.sock")} == {
            "0o700",
            "0o600",
        }


def test_a_server_killed_while_a_certificate_is_issued_gets_it_later(acme: AcmeServer, tmp_path: Path) -> None:
    chance = random.Random(5)
    with up(tmp_path / "data", "--tls", "--domain", DOMAIN, "--no-first-agent", **acme.settings) as server:
        for name in ("agents", "api", "uploads"):
            with ThreadPoolExecutor(1) as threads:
                asked = threads.submit(curl, acme, f"https://{name}.{DOMAIN}/healthz", timeout=20)
                until(asked.running)
                time.sleep(chance.uniform(0, 0.8))  # a random time for the kill
                server.kill()
                asked.result()
            until(lambda: not is_listening(acme.tls_port))
            server.start()
            assert curl(acme, f"https://{name}.{DOMAIN}/healthz").status == 200


async def is_refused(acme: AcmeServer, *page: str) -> bool:
    return (await get(acme, *page)).code == REFUSED


async def shakes_hands(acme: AcmeServer, name: str, authority: bytes) -> bool:
    try:
        _, writer = await connect(acme, name, authority)
    except OSError:
        return False
    writer.transport.abort()
    return True


async def eventually(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(20):
        while not await condition():
            await asyncio.sleep(0.05)


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
