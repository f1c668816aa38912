"""The unmodified tus client against a server."""

import asyncio
from pathlib import Path

from roost.core import clock
from roost.storage.content.unixfs.importer import UnixfsImporter
from roost.storage.content.unixfs.profile import PROFILES
from tests.support import node
from tests.support.server import running

FOLDER = Path(__file__).parent / "client"
NAMES = Path(node.__file__).parents[1] / "clients" / "names.mjs"
SIZE = 3_000_000


def cid(profile: str) -> str:
    content = bytearray(SIZE)
    for at in range(0, SIZE - 3, 4096):
        content[at : at + 4] = at.to_bytes(4, "little")
    importer = UnixfsImporter(PROFILES[profile])
    importer.update(content)
    return str(importer.finish().cid)


async def test_the_published_client_uploads(tmp_path: Path) -> None:
    packages = node.installed(FOLDER)
    async with running(tmp_path / "data") as server:
        uploads = server.client(server.key("signs"), "uploads.localhost")
        body = {"date": int(clock.utc_now().timestamp()), "expires": 300, "network": "public"}
        signed = (await uploads.post("/v3/files/sign", json=body)).json()["data"]
        environment = {
            "ROOST_PORT": str(server.port),
            "ROOST_KEY": server.key(),
            "ROOST_SIGNED": signed,
            "ROOST_WANTED": cid("v1"),
            "ROOST_WHOLE": cid("v0"),
        }
        told = await node.run(
            FOLDER / "uploads.mjs", tmp_path / "client", packages, environment, "--import", str(NAMES)
        )
    assert told == "done\n"


async def test_an_upload_resumes_after_a_restart_of_the_server(tmp_path: Path) -> None:
    packages, journey = node.installed(FOLDER), tmp_path / "client"
    async with running(tmp_path / "data") as server:
        port = server.port
        environment = {"ROOST_PORT": str(port), "ROOST_KEY": server.key(), "ROOST_WANTED": cid("v1")}
        client = asyncio.create_task(
            node.run(FOLDER / "restart.mjs", journey, packages, environment, "--import", str(NAMES))
        )
        await wait_for_file(journey / "left", client)
    (journey / "down").touch()
    await wait_for_file(journey / "failed", client)
    async with running(tmp_path / "data", port=port):
        assert await client == "done\n"


async def wait_for_file(path: Path, client: asyncio.Task[str]) -> None:
    async with asyncio.timeout(60):
        while not path.exists():
            if client.done():
                client.result()
            await asyncio.sleep(0.01)
