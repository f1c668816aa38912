"""Configurations for proxies of the operator's own: the real programs serve Roost with them."""

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from roost.drivers.tls_proxy.caddy import find_caddy
from roost.http.tls.proxy_config import ProxyProgram, ProxySite, render_proxy_config
from tests.cli.terminal import run
from tests.platforms.tls import Authority
from tests.support.acme import PACKAGES, AcmeServer, connect, curl, wait_for_port
from tests.support.debian_root import debian_command
from tests.support.server import RunningServer, running

DOMAIN = "roost.test"
REFUSED = 35


@pytest.fixture
async def server(acme: AcmeServer, tmp_path: Path) -> AsyncIterator[RunningServer]:
    settings: dict[str, Any] = {
        "ROOST_DOMAIN": DOMAIN,
        "ROOST_PUBLIC_SCHEME": "https",
        "ROOST_PUBLIC_PORT": str(acme.tls_port),
        "ROOST_TRUSTED_PROXIES": "127.0.0.1, ::1",
    }
    async with running(tmp_path / "data", **settings) as server:
        yield server


@pytest.mark.container
async def test_caddy_serves_every_name_with_a_certificate(acme: AcmeServer, server: RunningServer) -> None:
    folder = acme.folder
    content = render(server, "caddy", acme).replace(
        "{\n",
        f"{{\n\tadmin off\n\thttp_port {acme.http_port}\n\tacme_ca {acme.url}\n\tacme_ca_root {acme.ca}\n"
        f"\tstorage file_system {folder}/storage\n",
        1,
    )
    (folder / "Caddyfile").write_text(content)
    command = [str(find_caddy(None)), "run", "--config", "Caddyfile"]
    with program(command, folder, acme.tls_port):
        await check_proxy(acme, server, acme.ca)
        assert (await asyncio.to_thread(curl, acme, "https://evil.example/")).code == REFUSED
        asked = await asyncio.to_thread(curl, acme, f"https://agents.{DOMAIN}/tls/permission?domain=x")
        assert asked.status == 404


@pytest.mark.container
async def test_nginx_serves_every_name_with_one_certificate(acme: AcmeServer, server: RunningServer) -> None:
    authority, folder = Authority("company"), acme.folder
    names = [DOMAIN, f"*.{DOMAIN}", f"*.agents.{DOMAIN}", f"*.gateways.{DOMAIN}"]
    (folder / "site.pem").write_bytes(authority.issue(*names))
    (folder / "site-ca.pem").write_bytes(authority.certificate)
    content = render(server, "nginx", acme, str(folder / "site.pem")).replace("listen 80;", f"listen {acme.http_port};")
    paths = "".join(
        f"{name}_temp_path {folder}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/nginx.pid; error_log stderr;\nevents {{}}\n"
        f"http {{ access_log off;\n{paths}{content.replace('listen [::]:80;', '')} }}"
    )
    bwrap, *rest = debian_command("sbin/nginx", PACKAGES, folder)
    plain_user = ("--unshare-user", "--uid", "1000", "--gid", "1000")  # root would need an account for its workers
    command = [bwrap, *plain_user, *rest, "-c", f"{folder}/nginx.conf", "-e", "stderr"]
    with program(command, folder, acme.tls_port):
        await check_proxy(acme, server, folder / "site-ca.pem")


def test_traefik_gets_a_route_for_every_name() -> None:
    content = yaml.safe_load(render_proxy_config("traefik", ProxySite("roost.example.com", "127.0.0.1:8642")))
    router = content["http"]["routers"]["roost"]
    assert router["rule"] == r"HostRegexp(`^(.+\.)?roost\.example\.com$`)"
    assert content["http"]["services"]["roost"]["loadBalancer"]["servers"] == [{"url": "http://127.0.0.1:8642"}]
    assert router["middlewares"] == list(content["http"]["middlewares"])


@pytest.mark.parametrize("name", ["caddy", "nginx", "traefik"])
def test_the_command_prints_it_for_the_settings(name: ProxyProgram, tmp_path: Path) -> None:
    (tmp_path / "roost.toml").write_text('domain = "roost.example.com"\nport = 8700\n')
    printed = run("proxy-config", name, "--data", str(tmp_path)).stdout
    assert printed == render_proxy_config(name, ProxySite("roost.example.com", "127.0.0.1:8700"))


def render(server: RunningServer, name: ProxyProgram, acme: AcmeServer, pem: str = "") -> str:
    return render_proxy_config(name, ProxySite(DOMAIN, f"127.0.0.1:{server.port}", acme.tls_port, pem, pem))


async def check_proxy(acme: AcmeServer, server: RunningServer, ca: Path) -> None:
    """Check what any proxy in front of Roost has to do."""
    management = server.client(server.key(), f"agents.{DOMAIN}")
    agent = (await management.post("/v0/agents", json={"name": "a"})).json()["agent"]
    host = f"{agent['agentId']}.agents.{DOMAIN}"

    async def get(url: str, *options: str, **more: int) -> Any:
        return await asyncio.to_thread(curl, acme, url, "--cacert", str(ca), *options, **more)

    token = ("-H", f"Authorization: Bearer {agent['gatewayToken']}")
    moved = await get(f"http://{host}/x?y=%2F", port=acme.http_port)
    assert (moved.status, moved.headers["location"]) == (308, f"https://{host}:{acme.tls_port}/x?y=%2F")
    for version in ("--http1.1", "--http2"):
        echo = await get(f"https://{host}/echo", *token, "-H", "X-Forwarded-For: 203.0.113.9", version)
        headers = {name.lower(): value for name, value in json.loads(echo.body)["headers"]}
        assert (headers["x-forwarded-for"], headers["x-forwarded-proto"]) == ("192.0.0.8", "https")
        assert echo.headers["strict-transport-security"] == "max-age=31536000; includeSubDomains"
    (acme.folder / "upload").write_bytes(b"x" * 3 * 1024**2)
    uploaded = await get(f"https://{host}/echo", *token, "--data-binary", f"@{acme.folder}/upload")
    assert len(json.loads(uploaded.body)["body"]) == 3 * 1024**2
    assert (await get(f"https://{host}/echo", *token, "-H", f"Host: agents.{DOMAIN}")).status == 421
    head = f"GET %s HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {agent['gatewayToken']}\r\n%s\r\n"
    upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 13\r\n"
    async with stream(acme, host, ca) as (reader, writer):
        writer.write((head % ("/ws", upgrade)).encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101")
        writer.write(b"\x81\x85\0\0\0\0hello")
        assert await reader.readexactly(7) == b"\x81\x05hello"
    async with stream(acme, host, ca) as (reader, writer):
        writer.write((head % ("/slow?every=30&count=2", "")).encode())
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200"), "at once, before any chunk"


@asynccontextmanager
async def stream(acme: AcmeServer, host: str, ca: Path) -> AsyncIterator[Any]:
    async with asyncio.timeout(10):
        reader, writer = await connect(acme, host, ca.read_bytes())
        yield reader, writer
        writer.transport.abort()


@contextmanager
def program(command: Sequence[str], folder: Path, port: int) -> Iterator[None]:
    with (folder / "program.log").open("wb") as output:
        running = subprocess.Popen(command, cwd=folder, env={"HOME": str(folder)}, stdout=output, stderr=output)
    try:
        wait_for_port(port)
        yield
    finally:
        running.kill()
        running.wait(10)
        print((folder / "program.log").read_text())
