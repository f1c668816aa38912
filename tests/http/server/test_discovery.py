"""Clients that know one address of a server find the others."""

from pathlib import Path

from roost.drivers.runtime.fake import FakeRuntime
from tests.support.server import running


async def test_every_address_of_the_server_tells_its_domain_and_no_agent_does(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with running(data, runtime=FakeRuntime(data), ROOST_DOMAIN="Cloud.Example") as server:
        for host in ("cloud.example", "agents.cloud.example", "api.cloud.example", "localhost", "127.0.0.1"):
            answer = await server.client(host=host).get("/.well-known/roost")
            assert (answer.status_code, answer.json()) == (200, {"domain": "cloud.example"}), host
        for host in ("someone.agents.cloud.example", "agents.localhost", "other.example"):
            answer = await server.client(host=host).get("/.well-known/roost")
            assert answer.status_code in {401, 404}, host
