"""Gateways over real content, asked the way the dispatcher hands requests on."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from roost.core.db import Database
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.drivers.image.contract import Images
from roost.hosts.address import Addresses
from roost.hosts.dispatch import Dispatch
from roost.hosts.storage_gateway.answers import Answers
from roost.hosts.storage_gateway.gateway import StorageGatewayHost
from roost.hosts.storage_gateway.pictures import Pictures
from roost.hosts.storage_gateway.shelf import Shelf
from roost.storage.analytics.counter import Counter
from roost.storage.content import service
from roost.storage.content.model import Hold, Network
from roost.storage.files.model import Note
from roost.storage.gateways.service import Gateways
from roost.storage.links.service import Links
from roost.storage.serve.service import Serving
from roost.storage.signatures.service import Signatures
from roost.storage.swaps.service import Swaps
from roost.storage.unixfs.cid import Cid
from roost.storage.unixfs.profile import V1, Profile
from tests.hosts.asgi import Sent, call
from tests.storage.house import House, entry

NAMES = {
    "plain.txt": b"a text\n",
    "page.html": b"<!doctype html><script>alert(1)</script>",
    "a & <b>.svg": b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
    "what? 100% #1.bin": b"\0\1\2",
}
BIG = hashlib.shake_128(b"gateway").digest(3_000_001)


async def others(scope: Any, _receive: Any, send: Any) -> None:
    """The application behind."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-others", b"1")]})
    await send({"type": "http.response.body", "body": scope["path"].encode()})


@dataclass
class Visits:
    """A house with two tenants, each with a gateway: `mine-gate` and `their-gate`."""

    house: House
    gateways: Gateways
    swaps: Swaps
    signatures: Signatures
    links: Links
    app: Any
    ids: dict[str, str]
    counter: Counter

    async def get(self, target: str, gateway: str = "mine-gate", *, method: str = "GET", **headers: str) -> Sent:
        fields = [(name.replace("_", "-"), value) for name, value in headers.items()]
        host = f"{gateway}.gateways.localhost"
        return await call(self.app, target, method=method, host=host, headers=fields, stays=True)

    async def folder(
        self, files: Mapping[str, bytes], network: Network = Network.PUBLIC, tenant: str | None = None
    ) -> Cid:
        return (await self.nested({"": files}, network, tenant))[-1]

    async def nested(
        self,
        folders: Mapping[str, Mapping[str, bytes]],
        network: Network = Network.PUBLIC,
        tenant: str | None = None,
        profile: Profile = V1,
    ) -> list[Cid]:
        """The folders' CIDs; the last holds those before it, under their names."""
        below: list[Any] = []
        cids: list[Cid] = []
        async with self.house.content.receive(profile) as pack:
            for number, (name, files) in enumerate(folders.items()):
                entries = [] if number < len(folders) - 1 else below
                for file, data in files.items():
                    await pack.write(data)
                    entries.append(entry(file, await pack.end_file()))
                tree = pack.add_folder(entries)
                below.append(entry(name, tree))
                cids.append(tree.cid)
            hold = Hold(pack.pack_id, f"file/{pack.pack_id}", tenant or self.house.tenant_id, network)
            await pack.commit(lambda connection: service.hold(connection, hold))
        return cids

    async def file(self, data: bytes, network: Network = Network.PUBLIC, tenant: str | None = None) -> Cid:
        file = await self.house.file(data, Note(), network=network, tenant_id=tenant)
        return Cid.parse(file.cid)


async def visits(db: Database, house: House, images: Images) -> Visits:
    gateways = Gateways(db, lambda name: f"http://{name}.gateways.localhost:8642")
    made = [await gateways.create(house.tenant_id, "mine-gate"), await gateways.create(house.other_id, "their-gate")]
    links = Links(db, Sealer(Sensitive(bytes(32))), "http://uploads.localhost:8642")
    swaps, signatures = Swaps(db, gateways), Signatures(db)
    pictures = Pictures(house.reader, images, Shelf(house.folder / "images", 10_000_000))
    counter = Counter(db, 90)
    serving = Serving(gateways, swaps, signatures, links, house.reader)
    host = StorageGatewayHost(others, serving, Answers(house.reader, pictures), counter)
    app = Dispatch(host, Addresses("localhost", 8642))
    return Visits(house, gateways, swaps, signatures, links, app, {one.domain: one.id for one in made}, counter)
