"""What installed plugins do to what is served."""

from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.cid import Cid
from roost.storage.gateways.model import Plugin
from tests.http.storage_gateway.gateway_env import GatewayEnv
from tests.http.storage_gateway.test_admission import linked
from tests.support.wallet import Account, encode_defunct


async def install(env: GatewayEnv, plugin: Plugin) -> None:
    await env.gateways.install_plugin(env.storage.tenant_id, env.ids["mine-gate"], plugin)


async def sign(env: GatewayEnv, cid: Cid, network: ContentNetwork) -> str:
    wallet = Account.from_key(bytes(31) + b"\1")
    signature = "0x" + wallet.sign_message(encode_defunct(text=str(cid))).signature.hex().removeprefix("0x")
    await env.signatures.add(env.storage.tenant_id, network, str(cid), signature, wallet.address)
    return signature


async def test_a_signature_is_served_with_what_it_signs(env: GatewayEnv) -> None:
    signed, plain, private = (
        await env.file(b"a"),
        await env.file(b"b"),
        await env.file(b"c", ContentNetwork.PRIVATE),
    )
    signature = await sign(env, signed, ContentNetwork.PUBLIC)
    secret = await sign(env, private, ContentNetwork.PRIVATE)
    assert "pinata-signature" not in (await env.get(f"/ipfs/{signed}")).headers
    await install(env, Plugin.CONTENT_ADDRESSABLE)
    for target in (f"/ipfs/{signed}", f"/ipfs/{signed}?format=raw"):
        assert (await env.get(target)).headers["pinata-signature"] == signature
    assert "pinata-signature" in (await env.get("/ipfs/x", method="GET")).headers["access-control-expose-headers"]
    assert "pinata-signature" not in (await env.get(f"/ipfs/{plain}")).headers
    assert (await env.get(await linked(env, f"/files/{private}"))).headers["pinata-signature"] == secret


async def test_a_swap_serves_another_content_and_says_which(env: GatewayEnv) -> None:
    old, new = await env.file(b"old"), await env.file(b"new")
    await env.swaps.put(env.storage.tenant_id, ContentNetwork.PUBLIC, str(old), str(new))
    assert (await env.get(f"/ipfs/{old}")).body == b"old"
    await install(env, Plugin.HOT_SWAPS)
    sent = await env.get(f"/ipfs/{old}")
    assert (sent.body, sent.headers["etag"]) == (b"new", f'"{new}"')
    assert sent.headers["cache-control"] == "public, no-cache"
    assert sent.headers["x-ipfs-path"] == f"/ipfs/{old}"
    assert sent.headers["x-ipfs-roots"] == str(new)
    assert (await env.get(f"/ipfs/{old}", if_none_match=f'"{old}"')).status == 200
    assert (await env.get(f"/ipfs/{old}", if_none_match=f'"{new}"')).status == 304
    await env.swaps.delete(env.storage.tenant_id, ContentNetwork.PUBLIC, str(old))
    assert (await env.get(f"/ipfs/{old}")).body == b"old"


async def test_a_swap_opens_nothing_private(env: GatewayEnv) -> None:
    public, private = await env.file(b"public"), await env.file(b"private", ContentNetwork.PRIVATE)
    await install(env, Plugin.HOT_SWAPS)
    other = await env.file(b"other", ContentNetwork.PRIVATE)
    await env.swaps.put(env.storage.tenant_id, ContentNetwork.PRIVATE, str(private), str(other))
    assert (await env.get(f"/ipfs/{private}")).status == 404
    assert (await env.get(f"/ipfs/{public}")).body == b"public"
    assert (await env.get(await linked(env, f"/files/{private}"))).body == b"other"
