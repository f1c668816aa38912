"""Whose content a gateway serves, and to whom."""

import pytest

from roost.core import clock
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.cid import DAG_PB, Cid
from roost.storage.files.signed_urls.model import ValidityPeriod
from roost.storage.gateways.model import AccessControlKind
from tests.http.storage_gateway.gateway_env import BIG, NAMES, GatewayEnv

FORMS = ("", "/", "/plain.txt", "?format=raw", "?format=car", "/plain.txt?format=car&dag-scope=entity")


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_private_content_is_as_if_it_were_not_there(env: GatewayEnv, method: str) -> None:
    private = await env.folder(NAMES, ContentNetwork.PRIVATE)
    nowhere = Cid.for_block(DAG_PB, b"nowhere")
    for form in FORMS:
        for fields in ({}, {"range": "bytes=0-1"}, {"if_none_match": f'"{private}"'}):
            hidden = await env.get(f"/ipfs/{private}{form}", method=method, **fields)
            absent = await env.get(f"/ipfs/{nowhere}{form}", method=method, **fields)
            assert hidden.status == 404
            assert (hidden.status, hidden.headers, hidden.body) == (absent.status, absent.headers, absent.body)
    own = await env.get("/plain.txt", f"{private}.ipfs.mine-gate")
    assert own.status == 404


async def test_a_restricted_gateway_serves_its_owner_only(env: GatewayEnv) -> None:
    theirs = await env.file(b"theirs", tenant=env.storage.other_id)
    assert (await env.get(f"/ipfs/{theirs}", "their-gate")).body == b"theirs"
    refused = await env.get(f"/ipfs/{theirs}", "mine-gate")
    assert (refused.status, refused.body[:12]) == (404, b"ERR_ID:00006")


async def test_a_gateway_with_controls_is_open_to_those_whom_they_let_in(env: GatewayEnv) -> None:
    theirs = await env.file(b"theirs", tenant=env.storage.other_id)
    private = await env.file(b"private", ContentNetwork.PRIVATE)
    tenant, gateway = env.storage.tenant_id, env.ids["mine-gate"]
    _, token = await env.gateways.create_access_token(tenant, gateway)
    await env.gateways.add_allowlist_entry(tenant, gateway, AccessControlKind.HOST, "app.example.com")
    refused = await env.get(f"/ipfs/{theirs}")
    assert (refused.status, refused.body[:12]) == (401, b"ERR_ID:00024")
    for target, fields in (
        (f"/ipfs/{theirs}?pinataGatewayToken={token.reveal()}", {}),
        (f"/ipfs/{theirs}", {"x_pinata_gateway_token": token.reveal()}),
        (f"/ipfs/{theirs}", {"origin": "https://app.example.com"}),
        (f"/ipfs/{theirs}", {"referer": "https://app.example.com/page"}),
    ):
        sent = await env.get(target, **fields)
        assert (sent.status, sent.body) == (200, b"theirs")
        assert sent.headers["cache-control"] == "private, max-age=29030400, immutable"
    assert (await env.get(f"/ipfs/{private}", x_pinata_gateway_token=token.reveal())).status == 404


async def test_addresses_can_be_let_in(env: GatewayEnv) -> None:
    cid = await env.file(b"hello")
    tenant, gateway = env.storage.tenant_id, env.ids["mine-gate"]
    control = await env.gateways.add_allowlist_entry(tenant, gateway, AccessControlKind.ADDRESS, "192.0.2.0/24")
    assert (await env.get(f"/ipfs/{cid}")).status == 401
    await env.gateways.add_allowlist_entry(tenant, gateway, AccessControlKind.ADDRESS, "127.0.0.0/8")
    assert (await env.get(f"/ipfs/{cid}")).status == 200
    await env.gateways.remove_control(tenant, gateway, AccessControlKind.ADDRESS, control.id)


async def test_a_gateway_that_is_not_there(env: GatewayEnv) -> None:
    cid = await env.file(b"hello")
    assert (await env.get(f"/ipfs/{cid}", "no-gate")).status == 404
    await env.gateways.delete(env.storage.other_id, env.ids["their-gate"])
    assert (await env.get(f"/ipfs/{cid}", "their-gate")).status == 404


# Private content by links


async def linked(env: GatewayEnv, url: str, expires: int = 60, date: int | None = None, tenant: str = "") -> str:
    """The target of a signed link to that address of `mine-gate`."""
    window = ValidityPeriod(int(clock.utc_now().timestamp()) if date is None else date, expires)
    signed = await env.links.sign_download(
        tenant or env.storage.tenant_id, f"http://mine-gate.gateways.localhost:8642{url}", window
    )
    return signed.partition(":8642")[2]


async def test_a_link_leads_to_one_private_file(env: GatewayEnv) -> None:
    cid = await env.file(BIG, ContentNetwork.PRIVATE)
    target = await linked(env, f"/files/{cid}?filename=a.bin")
    sent = await env.get(target)
    assert (sent.status, sent.body) == (200, BIG)
    assert sent.headers["cache-control"] == "private, no-cache"
    assert sent.headers["referrer-policy"] == "no-referrer"
    assert sent.headers["content-disposition"] == 'inline; filename="a.bin"'
    assert "x-ipfs-path" not in sent.headers
    part = await env.get(target, range="bytes=0-9")
    assert (part.status, part.body) == (206, BIG[:10])
    assert (await env.get(target, method="HEAD")).status == 200


async def test_a_link_counts_as_it_was_signed_only(env: GatewayEnv) -> None:
    cid = await env.file(b"private", ContentNetwork.PRIVATE)
    other = await env.file(b"other", ContentNetwork.PRIVATE)
    target = await linked(env, f"/files/{cid}")
    now = int(clock.utc_now().timestamp())
    for wrong in (
        f"/files/{cid}",
        target.replace(str(cid), str(other)),
        f"{target}&download=true",
        target.replace("X-Expires=60", "X-Expires=600"),
        target[:-1] + ("0" if target[-1] != "0" else "1"),
        await linked(env, f"/files/{cid}", date=now - 100),
        await linked(env, f"/files/{cid}", tenant=env.storage.other_id),
    ):
        sent = await env.get(wrong)
        assert sent.status == 403, wrong
        assert b"private" not in sent.body
    assert (await env.get(target, "their-gate")).status == 403
    assert (await env.get(target.replace("/files/", "/ipfs/"))).status == 404


async def test_a_link_to_what_is_not_there_tells_nothing_more(env: GatewayEnv) -> None:
    theirs = await env.file(b"theirs", ContentNetwork.PRIVATE, env.storage.other_id)
    public = await env.file(b"public")
    folder = await env.folder(NAMES, ContentNetwork.PRIVATE)
    for cid in (theirs, public, Cid.for_block(DAG_PB, b"nowhere"), folder):
        assert (await env.get(await linked(env, f"/files/{cid}"))).status == 404
    assert (await env.get(await linked(env, f"/files/{folder}/plain.txt"))).status == 200
