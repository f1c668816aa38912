"""What installed plugins do to what is served."""

from roost.storage.content.model import ContentNetwork
from roost.storage.gateways.model import Plugin
from roost.storage.unixfs.cid import Cid
from tests.hosts.storage_gateway.test_admission import linked
from tests.hosts.storage_gateway.visits import Visits
from tests.wallet import Account, encode_defunct


async def install(visit: Visits, plugin: Plugin) -> None:
    await visit.gateways.install_plugin(visit.open_storage_env.tenant_id, visit.ids["mine-gate"], plugin)


async def sign(visit: Visits, cid: Cid, network: ContentNetwork) -> str:
    wallet = Account.from_key(bytes(31) + b"\1")
    signature = "0x" + wallet.sign_message(encode_defunct(text=str(cid))).signature.hex().removeprefix("0x")
    await visit.signatures.add(visit.open_storage_env.tenant_id, network, str(cid), signature, wallet.address)
    return signature


async def test_a_signature_is_served_with_what_it_signs(visit: Visits) -> None:
    signed, plain, private = (
        await visit.file(b"a"),
        await visit.file(b"b"),
        await visit.file(b"c", ContentNetwork.PRIVATE),
    )
    signature = await sign(visit, signed, ContentNetwork.PUBLIC)
    secret = await sign(visit, private, ContentNetwork.PRIVATE)
    assert "pinata-signature" not in (await visit.get(f"/ipfs/{signed}")).headers
    await install(visit, Plugin.CONTENT_ADDRESSABLE)
    for target in (f"/ipfs/{signed}", f"/ipfs/{signed}?format=raw"):
        assert (await visit.get(target)).headers["pinata-signature"] == signature
    assert "pinata-signature" in (await visit.get("/ipfs/x", method="GET")).headers["access-control-expose-headers"]
    assert "pinata-signature" not in (await visit.get(f"/ipfs/{plain}")).headers
    assert (await visit.get(await linked(visit, f"/files/{private}"))).headers["pinata-signature"] == secret


async def test_a_swap_serves_another_content_and_says_which(visit: Visits) -> None:
    old, new = await visit.file(b"old"), await visit.file(b"new")
    await visit.swaps.put(visit.open_storage_env.tenant_id, ContentNetwork.PUBLIC, str(old), str(new))
    assert (await visit.get(f"/ipfs/{old}")).body == b"old"
    await install(visit, Plugin.HOT_SWAPS)
    sent = await visit.get(f"/ipfs/{old}")
    assert (sent.body, sent.headers["etag"]) == (b"new", f'"{new}"')
    assert sent.headers["cache-control"] == "public, no-cache"
    assert sent.headers["x-ipfs-path"] == f"/ipfs/{old}"
    assert sent.headers["x-ipfs-roots"] == str(new)
    assert (await visit.get(f"/ipfs/{old}", if_none_match=f'"{old}"')).status == 200
    assert (await visit.get(f"/ipfs/{old}", if_none_match=f'"{new}"')).status == 304
    await visit.swaps.delete(visit.open_storage_env.tenant_id, ContentNetwork.PUBLIC, str(old))
    assert (await visit.get(f"/ipfs/{old}")).body == b"old"


async def test_a_swap_opens_nothing_private(visit: Visits) -> None:
    public, private = await visit.file(b"public"), await visit.file(b"private", ContentNetwork.PRIVATE)
    await install(visit, Plugin.HOT_SWAPS)
    other = await visit.file(b"other", ContentNetwork.PRIVATE)
    await visit.swaps.put(visit.open_storage_env.tenant_id, ContentNetwork.PRIVATE, str(private), str(other))
    assert (await visit.get(f"/ipfs/{private}")).status == 404
    assert (await visit.get(f"/ipfs/{public}")).body == b"public"
    assert (await visit.get(await linked(visit, f"/files/{private}"))).body == b"other"
