from pathlib import Path

import pytest

from roost.core.db import Database
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.hosts.storage_gateway.errors import ContentNotServed, GatewayAccessDenied, PathNotFound, UnknownGateway
from roost.hosts.storage_gateway.resolver import PATH_DEPTH_LIMIT, GatewayResolver, GatewayVisitor
from roost.storage.content import service
from roost.storage.content.model import ContentNetwork, PackReference
from roost.storage.gateways.model import AccessControlKind
from roost.storage.gateways.service import StorageGatewayService
from roost.storage.signatures.service import SignatureService
from roost.storage.signed_urls.service import SignedUrlService
from roost.storage.swaps.service import SwapService
from roost.storage.unixfs.profile import V1
from tests.storage.house import House, entry, house

ANYBODY = GatewayVisitor(None, "192.0.2.1", None)


@pytest.fixture
def place(database: Database, tmp_path: Path) -> House:
    return house(database, tmp_path)


def served(place: House) -> tuple[StorageGatewayService, GatewayResolver]:
    gateways = StorageGatewayService(place.db, lambda name: f"http://{name}")
    links = SignedUrlService(place.db, Sealer(Sensitive(bytes(32))), "http://uploads.localhost")
    return gateways, GatewayResolver(
        gateways, SwapService(place.db, gateways), SignatureService(place.db), links, place.reader
    )


async def test_a_way_as_long_as_it_may_be(place: House) -> None:
    gateways, serving = served(place)
    await gateways.create(place.tenant_id, "mine-gate")
    async with place.content.receive(V1) as pack:
        await pack.write(b"deep")
        file = tree = await pack.end_file()
        for _ in range(PATH_DEPTH_LIMIT):
            tree = pack.add_folder([entry("d", tree)])
        hold = PackReference(pack.pack_id, "file/1", place.tenant_id, ContentNetwork.PUBLIC)
        await pack.commit(lambda connection: service.hold_pack(connection, hold))
    found = await serving.public("mine-gate", ANYBODY, tree.cid, ["d"] * PATH_DEPTH_LIMIT)
    assert found.end.cid == file.cid


async def test_what_a_visitor_gets_depends_on_the_gateway(place: House) -> None:
    gateways, serving = served(place)
    mine = await gateways.create(place.tenant_id, "mine-gate")
    await gateways.create(place.other_id, "their-gate")
    _, (public,) = await place.keep(b"public", network=ContentNetwork.PUBLIC)
    _, (private,) = await place.keep(b"private", holder="file/2")

    found = await serving.public("mine-gate", ANYBODY, public.cid, ())
    assert found.end.cid == public.cid
    assert found.shared
    for gateway, cid in (("their-gate", public.cid), ("mine-gate", private.cid)):
        for path in ((), ("x",)):
            with pytest.raises(ContentNotServed):
                await serving.public(gateway, ANYBODY, cid, path)
    with pytest.raises(PathNotFound):
        await serving.public("mine-gate", ANYBODY, public.cid, ["x"])
    with pytest.raises(PathNotFound):
        await serving.public("mine-gate", ANYBODY, public.cid, ["x"] * (PATH_DEPTH_LIMIT + 1))
    with pytest.raises(UnknownGateway):
        await serving.public("no-gate", ANYBODY, public.cid, ())

    await gateways.allow(place.tenant_id, mine.id, AccessControlKind.ADDRESS, "198.51.100.1")
    with pytest.raises(GatewayAccessDenied):
        await serving.public("mine-gate", ANYBODY, public.cid, ())
    opened = await serving.public("mine-gate", GatewayVisitor(None, "198.51.100.1", None), public.cid, ())
    assert not opened.shared
