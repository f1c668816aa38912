"""The protocol's own client, unmodified, against a server."""

from pathlib import Path

from roost.core import clock
from roost.storage.unixfs.importer import Importer
from roost.storage.unixfs.profile import PROFILES
from tests import node
from tests.server import running

FOLDER = Path(__file__).parent / "client"
NAMES = Path(node.__file__).parent / "clients" / "names.mjs"
SIZE = 3_000_000


def cid(profile: str) -> str:
    content = bytearray(SIZE)
    for at in range(0, SIZE - 3, 4096):
        content[at : at + 4] = at.to_bytes(4, "little")
    importer = Importer(PROFILES[profile])
    importer.update(content)
    return str(importer.finish().cid)


async def test_the_published_client_uploads(tmp_path: Path) -> None:
    packages = node.installed(FOLDER)
    async with running(tmp_path / "data") as house:
        uploads = house.client(house.key("signs"), "uploads.localhost")
        body = {"date": int(clock.now().timestamp()), "expires": 300, "network": "public"}
        signed = (await uploads.post("/v3/files/sign", json=body)).json()["data"]
        environment = {
            "ROOST_PORT": str(house.port),
            "ROOST_KEY": house.key(),
            "ROOST_SIGNED": signed,
            "ROOST_WANTED": cid("v1"),
            "ROOST_WHOLE": cid("v0"),
        }
        told = await node.run(
            FOLDER / "uploads.mjs", tmp_path / "client", packages, environment, "--import", str(NAMES)
        )
    assert told == "done\n"
