"""Gateways over real content, called through the host router."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from roost.core.db import Database
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.drivers.image.contract import ImageRenderer
from roost.http.stack.address import HostAddresses
from roost.http.stack.host_router import HostRouter
from roost.http.storage_gateway.application import StorageGatewayApp
from roost.http.storage_gateway.content_responses import ContentResponses
from roost.http.storage_gateway.images import DiskCache, ImageResizer
from roost.http.storage_gateway.paid_content import PaidContent
from roost.http.storage_gateway.resolver import GatewayResolver
from roost.http.storage_gateway.response_cache import ResponseCache
from roost.storage.content import service
from roost.storage.content.model import ContentNetwork, PackReference
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.profile import V1, ImportProfile
from roost.storage.files.model import FileMetadata
from roost.storage.files.signatures.service import SignatureService
from roost.storage.files.signed_urls.service import SignedUrlService
from roost.storage.gateways.analytics.service import GatewayHitCounter
from roost.storage.gateways.service import StorageGatewayService
from roost.storage.gateways.swaps.service import SwapService
from roost.storage.payments.instructions.model import PaymentAssets
from roost.storage.payments.service import PaymentService
from tests.http.asgi import Sent, call
from tests.storage.storage_env import StorageEnv, entry

NAMES = {
    "plain.txt": b"a text\n",
    "page.html": b"<!doctype html><script>alert(1)</script>",
    "a & <b>.svg": b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>',
    "what? 100% #1.bin": b"\0\1\2",
}
BIG = hashlib.shake_128(b"gateway").digest(3_000_001)


async def next_app(scope: Any, _receive: Any, send: Any) -> None:
    """The application behind the gateway."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-others", b"1")]})
    await send({"type": "http.response.body", "body": scope["path"].encode()})


@dataclass
class GatewayEnv:
    """A server with two tenants, each with a gateway: `mine-gate` and `their-gate`."""

    storage: StorageEnv
    gateways: StorageGatewayService
    swaps: SwapService
    signatures: SignatureService
    links: SignedUrlService
    app: Any
    ids: dict[str, str]
    counter: GatewayHitCounter

    async def get(self, target: str, gateway: str = "mine-gate", *, method: str = "GET", **headers: str) -> Sent:
        fields = [(name.replace("_", "-"), value) for name, value in headers.items()]
        host = f"{gateway}.gateways.localhost"
        return await call(self.app, target, method=method, host=host, headers=fields, stays=True)

    async def folder(
        self, files: Mapping[str, bytes], network: ContentNetwork = ContentNetwork.PUBLIC, tenant: str | None = None
    ) -> Cid:
        return (await self.nested({"": files}, network, tenant))[-1]

    async def nested(
        self,
        folders: Mapping[str, Mapping[str, bytes]],
        network: ContentNetwork = ContentNetwork.PUBLIC,
        tenant: str | None = None,
        profile: ImportProfile = V1,
    ) -> list[Cid]:
        """The folders' CIDs; the last holds those before it, under their names."""
        below: list[Any] = []
        cids: list[Cid] = []
        async with self.storage.content.receive(profile) as pack:
            for number, (name, files) in enumerate(folders.items()):
                entries = [] if number < len(folders) - 1 else below
                for file, data in files.items():
                    await pack.write(data)
                    entries.append(entry(file, await pack.end_file()))
                tree = pack.add_folder(entries)
                below.append(entry(name, tree))
                cids.append(tree.cid)
            hold = PackReference(pack.pack_id, f"file/{pack.pack_id}", tenant or self.storage.tenant_id, network)
            await pack.commit(lambda connection: service.hold_pack(connection, hold))
        return cids

    async def file(
        self, data: bytes, network: ContentNetwork = ContentNetwork.PUBLIC, tenant: str | None = None
    ) -> Cid:
        file = await self.storage.file(data, FileMetadata(), network=network, tenant_id=tenant)
        return Cid.parse(file.cid)


async def open_gateway_env(db: Database, storage: StorageEnv, renderer: ImageRenderer) -> GatewayEnv:
    gateways = StorageGatewayService(db, lambda name: f"http://{name}.gateways.localhost:8642")
    made = [
        await gateways.create(storage.tenant_id, "mine-gate"),
        await gateways.create(storage.other_id, "their-gate"),
    ]
    links = SignedUrlService(db, Sealer(Sensitive(bytes(32))), "http://uploads.localhost:8642")
    swaps, signatures = SwapService(db, gateways), SignatureService(db)
    resizer = ImageResizer(storage.reader, renderer, DiskCache(storage.folder / "images", 10_000_000))
    counter = GatewayHitCounter(db, 90)
    resolver = GatewayResolver(gateways, swaps, signatures, links, storage.reader)
    responses = ContentResponses(storage.reader, resizer)
    payments = PaymentService(db, PaymentAssets(), None)
    paid_content = PaidContent(resolver, responses, payments, lambda name: f"http://{name}.gateways.localhost:8642")
    host = StorageGatewayApp(next_app, resolver, responses, counter, ResponseCache(lambda: db.version), paid_content)
    app = HostRouter(host, HostAddresses("localhost", 8642))
    return GatewayEnv(storage, gateways, swaps, signatures, links, app, {one.domain: one.id for one in made}, counter)
