from pathlib import Path

import pytest

from roost.core.db import Database
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.storage.content import service
from roost.storage.content.model import Hold, Network
from roost.storage.gateways.model import ControlKind
from roost.storage.gateways.service import Gateways
from roost.storage.links.service import Links
from roost.storage.serve.errors import AccessDenied, NoSuchGateway, NotPinned, NotThere
from roost.storage.serve.service import LONGEST_WAY, Serving, Visitor
from roost.storage.signatures.service import Signatures
from roost.storage.swaps.service import Swaps
from roost.storage.unixfs.profile import V1
from tests.storage.house import House, entry, house

ANYBODY = Visitor(None, "192.0.2.1", None)


@pytest.fixture
def place(database: Database, tmp_path: Path) -> House:
    return house(database, tmp_path)


def served(place: House) -> tuple[Gateways, Serving]:
    gateways = Gateways(place.db, lambda name: f"http://{name}")
    links = Links(place.db, Sealer(Sensitive(bytes(32))), "http://uploads.localhost")
    return gateways, Serving(gateways, Swaps(place.db, gateways), Signatures(place.db), links, place.reader)


async def test_a_way_as_long_as_it_may_be(place: House) -> None:
    gateways, serving = served(place)
    await gateways.create(place.tenant_id, "mine-gate")
    async with place.content.receive(V1) as pack:
        await pack.write(b"deep")
        file = tree = await pack.end_file()
        for _ in range(LONGEST_WAY):
            tree = pack.add_folder([entry("d", tree)])
        hold = Hold(pack.pack_id, "file/1", place.tenant_id, Network.PUBLIC)
        await pack.commit(lambda connection: service.hold(connection, hold))
    found = await serving.public("mine-gate", ANYBODY, tree.cid, ["d"] * LONGEST_WAY)
    assert found.end.cid == file.cid


async def test_what_a_visitor_gets_depends_on_the_gateway(place: House) -> None:
    gateways, serving = served(place)
    mine = await gateways.create(place.tenant_id, "mine-gate")
    await gateways.create(place.other_id, "their-gate")
    _, (public,) = await place.keep(b"public", network=Network.PUBLIC)
    _, (private,) = await place.keep(b"private", holder="file/2")

    found = await serving.public("mine-gate", ANYBODY, public.cid, ())
    assert found.end.cid == public.cid
    assert found.shared
    for gateway, cid in (("their-gate", public.cid), ("mine-gate", private.cid)):
        for path in ((), ("x",)):
            with pytest.raises(NotPinned):
                await serving.public(gateway, ANYBODY, cid, path)
    with pytest.raises(NotThere):
        await serving.public("mine-gate", ANYBODY, public.cid, ["x"])
    with pytest.raises(NotThere):
        await serving.public("mine-gate", ANYBODY, public.cid, ["x"] * (LONGEST_WAY + 1))
    with pytest.raises(NoSuchGateway):
        await serving.public("no-gate", ANYBODY, public.cid, ())

    await gateways.allow(place.tenant_id, mine.id, ControlKind.ADDRESS, "198.51.100.1")
    with pytest.raises(AccessDenied):
        await serving.public("mine-gate", ANYBODY, public.cid, ())
    opened = await serving.public("mine-gate", Visitor(None, "198.51.100.1", None), public.cid, ())
    assert not opened.shared
