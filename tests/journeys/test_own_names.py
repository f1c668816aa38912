"""Containers use the operator's host names and certificate authority."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from tests.platforms.tls import Authority
from tests.support.server import RunningServer, running

pytestmark = [pytest.mark.container]

NAME = "inside.example.com"
PYTHON = "python3 -c 'import urllib.request as u; print(u.urlopen(\"https://%s/\", timeout=10).read().decode())'"
BY_NAME = "unset HTTPS_PROXY https_proxy ALL_PROXY all_proxy; "


@contextlib.asynccontextmanager
async def site(authority: Authority) -> AsyncIterator[int]:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\ncompany")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(greet, "127.0.0.1", 0, ssl=authority.server(NAME))
    async with server:
        yield server.sockets[0].getsockname()[1]


async def agent(server: RunningServer) -> httpx.AsyncClient:
    made = await server.client(server.key()).post("/v0/agents", json={"name": "a"})
    return server.agent_client(made.json()["agent"])


async def run_command(own: httpx.AsyncClient, command: str) -> dict:
    return (await own.post("/v0/console/exec", json={"command": command})).json()


async def test_a_container_reaches_and_trusts_what_the_operator_placed(tmp_path: Path) -> None:
    authority = Authority("our company")
    (tmp_path / "ca.pem").write_bytes(authority.certificate)
    async with site(authority) as port:
        settings: dict[str, Any] = {
            "ROOST_EGRESS_HOSTS": f"{NAME}=127.0.0.1:{port}",
            "ROOST_EGRESS_ALLOW": "127.0.0.1/32",
            "ROOST_CA_FILE": str(tmp_path / "ca.pem"),
        }
        async with running(tmp_path / "data", **settings) as server:
            own = await agent(server)
            for way in ("", BY_NAME):
                found = await run_command(own, way + PYTHON % NAME)
                assert found["stdout"] == "company\n", found
            written = await run_command(
                own, 'echo x >> "$SSL_CERT_FILE"; echo x >> "$NODE_EXTRA_CA_CERTS"; ls /run/trust'
            )
            assert written["stderr"].count("cannot create") == 2
            assert written["stdout"].split() == ["added.pem", "all.pem"]


async def test_without_the_authority_nobody_is_trusted(tmp_path: Path) -> None:
    async with site(Authority("a stranger")) as port:
        settings: dict[str, Any] = {
            "ROOST_EGRESS_HOSTS": f"{NAME}=127.0.0.1:{port}",
            "ROOST_EGRESS_ALLOW": "127.0.0.1/32",
        }
        async with running(tmp_path / "data", **settings) as server:
            own = await agent(server)
            found = await run_command(own, PYTHON % NAME)
            assert "CERTIFICATE_VERIFY_FAILED" in found["stderr"]
            assert (await run_command(own, "env; ls /run"))["stdout"].count("trust") == 0
