"""Paid content on a server that takes no payments; tests/contract/payments has all that a payment opens."""

from roost.core.db import Database
from roost.storage.content.model import ContentNetwork
from roost.storage.files.service import FileService
from roost.storage.payments.instructions.model import PaymentAssets, PaymentRequirement
from roost.storage.payments.instructions.service import PaymentInstructionService
from tests.http.storage_gateway.gateway_env import GatewayEnv
from tests.storage.payments.payer import ASSET, SELLER


async def test_a_server_without_a_facilitator(env: GatewayEnv, database: Database) -> None:
    cid = await env.file(b"paid", ContentNetwork.PRIVATE)
    for method in ("GET", "HEAD"):
        assert (await env.get(f"/x402/cid/{cid}", method=method)).status == 404
    instructions = PaymentInstructionService(database, FileService(database), PaymentAssets())
    price = PaymentRequirement(ASSET.address, SELLER, "base-sepolia", "1")
    made = await instructions.create(env.storage.tenant_id, "articles", [price])
    await instructions.attach_cid(env.storage.tenant_id, made.id, str(cid))
    for spelling in (cid, cid.v1()):
        sent = await env.get(f"/x402/cid/{spelling}")
        assert (sent.status, b"ROOST_FACILITATOR_URL" in sent.body) == (503, True)
    assert (await env.get(f"/x402/cid/{cid}", "their-gate")).status == 404
    assert (await env.get(f"/x402/cid/{cid}", "no-gate")).status == 404
    for path in ("x402/cid/y", "x402/cid/", f"x402/cid/{cid}//"):
        assert (await env.get(f"/{path}")).status == 400
