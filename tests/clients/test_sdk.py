"""The published SDKs, unmodified, against a server: each journey is a script that Node runs."""

import base64
import hashlib
import io
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from PIL import Image

from roost.storage.content.unixfs.importer import UnixfsImporter
from roost.storage.content.unixfs.profile import V1
from tests.support import node
from tests.support.server import RunningServer, running
from tests.support.wallet import Account, encode_typed_data

FOLDER = Path(__file__).parent
LARGE = 94_371_841  # the SDK's bound, and one


@dataclass
class SdkClients:
    """Runs journeys against one server."""

    server: RunningServer
    folder: Path
    packages: Path
    gateway: str

    async def run(self, journey: str, **environment: str) -> str:
        everybody = {
            "ROOST_PORT": str(self.server.port),
            "ROOST_KEY": self.server.key(),
            "ROOST_OTHER": self.server.key("others"),
            "ROOST_READER": self.server.key(scopes=frozenset({"org:files:read"})),
            "ROOST_GATEWAY": self.gateway,
        }
        where = self.folder / "journey"
        script = FOLDER / f"{journey}.mjs"
        return await node.run(
            script, where, self.packages, everybody | environment, "--no-warnings", "--import", "./names.mjs"
        )


@pytest.fixture
async def clients(tmp_path: Path) -> AsyncIterator[SdkClients]:
    packages = node.installed(FOLDER)
    async with running(tmp_path / "data") as server:
        listed = await server.client(server.key(), "api.localhost").get("/v3/ipfs/gateways")
        yield SdkClients(server, tmp_path, packages, listed.json()["data"]["rows"][0]["domain"])


@pytest.mark.parametrize(
    "journey",
    ["uploads", "folders", "files", "links", "keys", "pins", "swaps", "x402", "rest", "analytics", "web3", "vectors"],
)
async def test_journey_of_the_sdk_works(clients: SdkClients, journey: str) -> None:
    assert await clients.run(journey) == "done\n"


async def test_gateways_of_the_sdk_serve_resized_images(clients: SdkClients) -> None:
    drawn = io.BytesIO()
    Image.new("RGB", (32, 32), "red").save(drawn, "PNG")
    picture = base64.b64encode(drawn.getvalue()).decode()
    assert await clients.run("gateways", ROOST_PICTURE=picture) == "done\n"


async def test_a_large_file(clients: SdkClients) -> None:
    content = bytearray(LARGE)
    for at in range(0, LARGE - 3, 65_536):
        content[at : at + 4] = at.to_bytes(4, "little")
    importer = UnixfsImporter(V1)
    importer.update(content)
    assert await clients.run("large", ROOST_WANTED=str(importer.finish().cid)) == "done\n"


async def test_signatures_of_the_sdk_are_verified(clients: SdkClients) -> None:
    asked = json.loads(await clients.run("signatures"))
    account = Account.from_key(hashlib.sha256(b"a wallet for tests").digest())
    message = {"address": account.address, "cid": asked["cid"], "date": asked["date"]}
    fields = {"Sign": [{"name": name, "type": kind} for name, kind in _SIGN]}
    signable = encode_typed_data({"name": "Sign Content", "version": "1.0.0", "chainId": 1}, fields, message)
    signature = "0x" + account.sign_message(signable).signature.hex().removeprefix("0x")
    await clients.run("signatures", ROOST_SIGNATURE=signature, ROOST_ADDRESS=account.address, ROOST_CID=asked["cid"])


_SIGN = (("address", "address"), ("cid", "string"), ("date", "string"))
