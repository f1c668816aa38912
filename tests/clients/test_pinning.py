"""The client of the Pinning Service API that its authors publish, unmodified, against a server."""

from pathlib import Path
from typing import Any

from roost.storage.content.unixfs.cid import RAW, Cid
from roost.storage.content.unixfs.profile import V0, V1
from tests.conformance.car_server import serve_cars
from tests.storage.cars import blocks_of, encode_car
from tests.support import node
from tests.support.server import running

FOLDER = Path(__file__).parent / "pinning"
NAMES = Path(__file__).parent / "names.mjs"
CARS = {
    str(tree.cid): encode_car([tree.cid], blocks)
    for tree, blocks in (blocks_of((V0, V1)[number % 2], f"file {number}".encode()) for number in range(9))
}


async def test_journey_of_the_pinning_client_works(tmp_path: Path) -> None:
    packages = node.installed(FOLDER)
    async with serve_cars(CARS) as source:
        settings: dict[str, Any] = {"ROOST_NETWORK": "trustless", "ROOST_NETWORK_URLS": source.url}
        async with running(tmp_path / "data", **settings) as server:
            environment = {
                "ROOST_PORT": str(server.port),
                "ROOST_KEY": server.key(),
                "ROOST_OTHER": server.key("others"),
                "ROOST_CIDS": ",".join(CARS),
                "ROOST_NOWHERE": str(Cid.for_block(RAW, b"nobody has it")),
            }
            options = ("--no-warnings", "--import", str(NAMES))
            printed = await node.run(FOLDER / "journey.mjs", tmp_path / "client", packages, environment, *options)
    assert printed == "done\n"
