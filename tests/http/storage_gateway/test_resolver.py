from collections.abc import Sequence
from pathlib import Path

import pytest

from roost.core.db import Database
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.http.storage_gateway.errors import (
    ContentNotServed,
    GatewayAccessDenied,
    PathNotFound,
    UnknownGateway,
    UnreadablePath,
)
from roost.http.storage_gateway.request import PATH_DEPTH_LIMIT, GatewayRequest
from roost.http.storage_gateway.resolver import GatewayResolver
from roost.storage.content import service
from roost.storage.content.model import ContentNetwork, PackReference
from roost.storage.content.unixfs import dagpb
from roost.storage.content.unixfs.cid import DAG_PB, IDENTITY, RAW, Cid
from roost.storage.content.unixfs.dagpb import PBLink, UnixfsData, UnixfsKind
from roost.storage.content.unixfs.profile import V1
from roost.storage.files.signatures.service import SignatureService
from roost.storage.files.signed_urls.service import SignedUrlService
from roost.storage.gateways.model import AccessControlKind
from roost.storage.gateways.service import StorageGatewayService
from roost.storage.gateways.swaps.service import SwapService
from tests.storage.storage_env import StorageEnv, entry, open_storage_env


def create_request(gateway: str, cid: Cid, path: Sequence[str] = (), ip: str = "192.0.2.1") -> GatewayRequest:
    return GatewayRequest(
        gateway=gateway,
        head=False,
        cid=cid,
        path=path,
        slash=False,
        own_origin=False,
        names_cid=True,
        is_private=False,
        is_paid=False,
        target="",
        query_string="",
        query={},
        headers={},
        ip=ip,
    )


@pytest.fixture
def env(database: Database, tmp_path: Path) -> StorageEnv:
    return open_storage_env(database, tmp_path)


def served(env: StorageEnv) -> tuple[StorageGatewayService, GatewayResolver]:
    gateways = StorageGatewayService(env.db, lambda name: f"http://{name}")
    links = SignedUrlService(env.db, Sealer(Sensitive(bytes(32))), "http://uploads.localhost")
    return gateways, GatewayResolver(
        gateways, SwapService(env.db, gateways), SignatureService(env.db), links, env.reader
    )


async def test_a_way_as_long_as_it_may_be(env: StorageEnv) -> None:
    gateways, serving = served(env)
    await gateways.create(env.tenant_id, "mine-gate")
    async with env.content.receive(V1) as pack:
        await pack.write(b"deep")
        file = tree = await pack.end_file()
        for _ in range(PATH_DEPTH_LIMIT):
            tree = pack.add_folder([entry("d", tree)])
        hold = PackReference(pack.pack_id, "file/1", env.tenant_id, ContentNetwork.PUBLIC)
        await pack.commit(lambda connection: service.hold_pack(connection, hold))
    found = await serving.resolve(create_request("mine-gate", tree.cid, ["d"] * PATH_DEPTH_LIMIT))
    assert found.end.cid == file.cid


async def test_content_for_a_visitor_depends_on_the_gateway(env: StorageEnv) -> None:
    gateways, serving = served(env)
    mine = await gateways.create(env.tenant_id, "mine-gate")
    await gateways.create(env.other_id, "their-gate")
    _, (public,) = await env.keep(b"public", network=ContentNetwork.PUBLIC)
    _, (private,) = await env.keep(b"private", holder="file/2")

    found = await serving.resolve(create_request("mine-gate", public.cid))
    assert found.end.cid == public.cid
    assert found.shared
    for gateway, cid in (("their-gate", public.cid), ("mine-gate", private.cid)):
        for path in ((), ("x",)):
            with pytest.raises(ContentNotServed):
                await serving.resolve(create_request(gateway, cid, path))
    with pytest.raises(PathNotFound):
        await serving.resolve(create_request("mine-gate", public.cid, ["x"]))
    with pytest.raises(PathNotFound):
        await serving.resolve(create_request("mine-gate", public.cid, ["x"] * (PATH_DEPTH_LIMIT + 1)))
    with pytest.raises(UnknownGateway):
        await serving.resolve(create_request("no-gate", public.cid))

    await gateways.add_allowlist_entry(env.tenant_id, mine.id, AccessControlKind.ADDRESS, "198.51.100.1")
    with pytest.raises(GatewayAccessDenied):
        await serving.resolve(create_request("mine-gate", public.cid))
    opened = await serving.resolve(create_request("mine-gate", public.cid, ip="198.51.100.1"))
    assert not opened.shared


async def test_a_path_that_cannot_be_read_is_not_a_missing_one(env: StorageEnv) -> None:
    """Only a site's missing paths have other content."""
    gateways, serving = served(env)
    await gateways.create(env.tenant_id, "mine-gate")
    links = [PBLink(Cid.for_block(RAW, b"of nobody here"), "a", 1)]
    root = Cid(1, DAG_PB, IDENTITY, dagpb.encode_node(links, UnixfsData(UnixfsKind.DIRECTORY)))
    for name, error in (("a", UnreadablePath), ("b", PathNotFound)):
        with pytest.raises(error):
            await serving.resolve(create_request("mine-gate", root, [name]))
