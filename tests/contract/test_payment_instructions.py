"""Payment instructions over HTTP (contract, Storage API, operation 2): shapes, refusals, tenants, races (I7)."""

import asyncio
import json
import re
from typing import Any

import httpx2 as httpx
import pytest

from roost.storage.content.model import ContentNetwork
from tests.contract.endpoints import CONTRACT, needs_contract, routes
from tests.contract.storage import keep
from tests.support.server import RunningServer

ROOT = "/v3/x402/payment_instructions"
POLYGON = "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359"
SETTINGS = {"ROOST_PAYMENT_ASSETS": f"polygon@eip155:137/{POLYGON}=USD Coin/2"}
ON_SERVICES = {
    "test_an_instruction_comes_and_goes",
    "test_cids_are_attached_and_removed",
    "test_of_two_at_once_one_is_attached",
}
USDC, USDC_SEPOLIA = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", "0x036CbD53842c5426634e7929541eC2318f3dCF7e"
NETWORKS = "base, eip155:8453, base-sepolia, eip155:84532, polygon, eip155:137"
WALLET = "0x209693Bc6afc0C5328bA36FaF03C514EF312287C"
CENT = {"asset": USDC, "pay_to": WALLET, "network": "base", "amount": "10000", "description": "A cent"}
UNKNOWN = (404, {"error": {"code": 404, "message": "Payment instruction not found"}})


def status_and_body(answer: httpx.Response) -> tuple[int, Any]:
    return answer.status_code, answer.json()


async def create(api: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    answer = await api.post(ROOT, json={"name": "articles", "payment_requirements": [CENT], **body})
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


async def add_file(server: RunningServer, tenant: str, content: bytes = b"one") -> str:
    return (await keep(server, tenant, ContentNetwork.PRIVATE, content)).cid


@needs_contract
def test_the_contracts_operation_is_here() -> None:
    rows = json.loads((CONTRACT / "endpoints.json").read_text())
    (wanted,) = [(row["method"], row["path"]) for row in rows if row["path"].startswith(ROOT)]
    assert routes()[wanted]["credentials"] == ["org:files:read"]


async def test_an_instruction_comes_and_goes(api: httpx.AsyncClient) -> None:
    bare = {name: value for name, value in CENT.items() if name != "description"}
    sepolia = {**bare, "asset": USDC_SEPOLIA.lower(), "network": "eip155:84532", "amount": str(2**256 - 1)}
    created = await create(api, payment_requirements=[CENT, sepolia], description="All articles")
    assert created == {
        "id": created["id"],
        "version": 1,
        "payment_requirements": [CENT, {**sepolia, "description": ""}],
        "name": "articles",
        "description": "All articles",
        "created_at": created["created_at"],
    }
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", created["created_at"])
    path = f"{ROOT}/{created['id']}"
    got = await api.get(path)
    assert status_and_body(got) == (200, {"data": created})
    assert got.headers["content-type"] == "application/json; charset=utf-8"
    renamed = await api.patch(path, json={"name": "texts", "description": None})
    assert status_and_body(renamed) == (200, {"data": {**created, "name": "texts", "version": 2}})
    changed = await api.patch(path, json={"payment_requirements": [CENT]})
    assert changed.json()["data"] == {**created, "name": "texts", "payment_requirements": [CENT], "version": 3}
    listed = await api.get(ROOT)
    assert listed.json() == {"data": {"payment_instructions": [changed.json()["data"]], "next_page_token": None}}
    assert status_and_body(await api.delete(path)) == (200, {"data": {}})
    for answer in (await api.get(path), await api.delete(path), await api.patch(path, json={"name": "x"})):
        assert status_and_body(answer) == UNKNOWN


async def test_a_configured_asset(api: httpx.AsyncClient) -> None:
    for network in ("polygon", "eip155:137"):
        requirement = {**CENT, "asset": POLYGON, "network": network}
        assert (await create(api, payment_requirements=[requirement]))["payment_requirements"] == [requirement]


@pytest.mark.parametrize(
    "amount",
    [
        *("-1", "+1", "1e3", "0x1", "1.0", "1,0", "007", "0", "", " 1", "1 ", "1\n", "one", "\u0661", "1_000", "NaN"),
        *(str(2**256), "1" + "0" * 80, "9" * 5000, 10000, 1.5, None, True, ["1"]),
    ],
)
async def test_malformed_amounts_are_refused(api: httpx.AsyncClient, amount: Any) -> None:
    body = {"name": "n", "payment_requirements": [CENT, {**CENT, "amount": amount}]}
    answer = await api.post(ROOT, json=body)
    assert answer.status_code == 400, answer.text
    assert re.match(r"payment_requirements\.1(: |\.)amount", answer.json()["error"]["message"])
    assert len(answer.text) < 500


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pay_to": "0x1"}, "payment_requirements.0: pay_to must be 0x and 40 hexadecimal digits"),
        ({"pay_to": WALLET[2:]}, "payment_requirements.0: pay_to must be 0x and 40 hexadecimal digits"),
        ({"pay_to": "vitalik.eth"}, "payment_requirements.0: pay_to must be 0x and 40 hexadecimal digits"),
        ({"pay_to": WALLET.swapcase().replace("X", "x")}, "payment_requirements.0: the checksum of pay_to is wrong"),
        ({"pay_to": "0x" + "0" * 40}, "payment_requirements.0: pay_to must not be the zero address"),
        ({"asset": USDC[:-1]}, "payment_requirements.0: asset must be 0x and 40 hexadecimal digits"),
        ({"asset": USDC.swapcase().replace("X", "x")}, "payment_requirements.0: the checksum of asset is wrong"),
        (
            {"asset": USDC_SEPOLIA},
            f"payment_requirements.0: asset on base must be one of {USDC} (USD Coin), got '{USDC_SEPOLIA}'",
        ),
        (
            {"network": "ethereum"},
            f"payment_requirements.0: network must be one of {NETWORKS}, got 'ethereum'",
        ),
        ({"network": "Base"}, None),
        ({"network": "eip155:08453"}, None),
        ({"network": "a\0"}, None),
        ({"asset": None}, None),
        ({"description": "x" * 256}, None),
    ],
)
async def test_malformed_requirements_change_nothing(
    api: httpx.AsyncClient, change: dict[str, Any], message: str | None
) -> None:
    created = await create(api)
    body = {"name": "n", "payment_requirements": [{**CENT, **change}]}
    for answer in (await api.post(ROOT, json=body), await api.patch(f"{ROOT}/{created['id']}", json=body)):
        assert answer.status_code == 400, answer.text
        assert message is None or answer.json()["error"]["message"] == message
    assert (await api.get(f"{ROOT}/{created['id']}")).json()["data"] == created


@pytest.mark.parametrize(
    "body",
    [
        *({}, [], "x", {"name": "n"}, {"payment_requirements": [CENT]}, {"name": "n", "payment_requirements": []}),
        *({"name": name, "payment_requirements": [CENT]} for name in ("", " ", "x" * 256, "a\0b", 1, None)),
        {"name": "n", "payment_requirements": [CENT] * 21},
        {"name": "n", "payment_requirements": CENT},
        {"name": "n", "payment_requirements": ["x"]},
        {"name": "n", "payment_requirements": [CENT], "description": "x" * 1001},
    ],
)
async def test_malformed_instructions_are_refused(api: httpx.AsyncClient, body: Any) -> None:
    answer = await api.post(ROOT, json=body)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"].keys() == {"code", "message"}
    assert (await api.get(ROOT)).json()["data"]["payment_instructions"] == []


async def test_an_update_without_a_field(api: httpx.AsyncClient) -> None:
    created = await create(api)
    for body in ({}, {"name": None}, {"version": 9}):
        answer = await api.patch(f"{ROOT}/{created['id']}", json=body)
        assert answer.status_code == 400
        assert answer.json()["error"]["message"] == "name, description or payment_requirements is required"
    assert (await api.get(f"{ROOT}/{created['id']}")).json()["data"]["version"] == 1


async def test_pages_and_filters(server: RunningServer, api: httpx.AsyncClient, tenant: str) -> None:
    created = [await create(api, name=f"i{number}") for number in range(12)]
    first = (await api.get(ROOT)).json()["data"]
    token = first["next_page_token"]
    rest = (await api.get(ROOT, params={"pageToken": token, "limit": 1000})).json()["data"]
    assert [*first["payment_instructions"], *rest["payment_instructions"]] == created[::-1]
    assert (len(first["payment_instructions"]), rest["next_page_token"]) == (10, None)
    cid = await add_file(server, tenant)
    await api.put(f"{ROOT}/{created[4]['id']}/cids/{cid}")
    for query, found in (
        ({"name": "I3"}, [created[3]]),
        ({"id": created[2]["id"]}, [created[2]]),
        ({"cid": cid}, [created[4]]),
        ({"cid": cid, "name": "i3"}, []),
        ({"name": "_"}, []),
    ):
        assert (await api.get(ROOT, params=query)).json()["data"]["payment_instructions"] == found


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=1001", "limit=x", "limit=-1", "pageToken=x", "cid=x", "name=%00", "name=" + "x" * 600]
)
async def test_malformed_list_queries_are_refused(api: httpx.AsyncClient, query: str) -> None:
    assert (await api.get(f"{ROOT}?{query}")).status_code == 400


async def test_cids_are_attached_and_removed(server: RunningServer, api: httpx.AsyncClient, tenant: str) -> None:
    one, two, cid = await create(api), await create(api), await add_file(server, tenant)
    path = f"{ROOT}/{one['id']}/cids"
    assert (await api.get(path)).json() == {"data": {"cids": [], "next_page_token": None}}
    attached = await api.put(f"{path}/{cid}")
    created_at = attached.json()["data"]["created_at"]
    association = {"payment_instruction_id": one["id"], "cid": cid, "created_at": created_at}
    assert status_and_body(attached) == (200, {"data": association})
    assert status_and_body(await api.put(f"{path}/{cid}")) == (200, {"data": association})
    refused = await api.put(f"{ROOT}/{two['id']}/cids/{cid}")
    message = f"CID is attached to payment instruction {one['id']}"
    assert status_and_body(refused) == (409, {"error": {"code": 409, "message": message}})
    message = "CIDs are attached to the payment instruction"
    assert status_and_body(await api.delete(f"{ROOT}/{one['id']}")) == (
        409,
        {"error": {"code": 409, "message": message}},
    )
    assert (await api.get(path)).json()["data"]["cids"] == [cid]
    assert (await api.delete(f"{ROOT}/{two['id']}/cids/{cid}")).status_code == 404
    assert status_and_body(await api.delete(f"{path}/{cid}")) == (200, {"data": {}})
    assert (await api.delete(f"{path}/{cid}")).status_code == 404
    assert (await api.put(f"{ROOT}/{two['id']}/cids/{cid}")).status_code == 200
    assert (await api.delete(f"{ROOT}/{one['id']}")).status_code == 200
    assert status_and_body(await api.put(f"{path}/{cid}")) == UNKNOWN
    assert status_and_body(await api.get(path)) == UNKNOWN


async def test_a_deleted_file_is_detached(server: RunningServer, api: httpx.AsyncClient, tenant: str) -> None:
    created, file = await create(api), await keep(server, tenant, ContentNetwork.PRIVATE, b"one")
    path = f"{ROOT}/{created['id']}"
    await api.put(f"{path}/cids/{file.cid}")
    assert (await api.delete(f"/v3/files/private/{file.id}")).status_code == 200
    assert (await api.get(f"{path}/cids")).json()["data"]["cids"] == []
    assert (await api.delete(path)).status_code == 200


async def test_foreign_and_public_files_cannot_be_attached(
    server: RunningServer, api: httpx.AsyncClient, tenant: str
) -> None:
    created, public = await create(api), await keep(server, tenant, ContentNetwork.PUBLIC, b"public")
    strange = await add_file(server, "foreign", b"strange")
    path = f"{ROOT}/{created['id']}/cids"
    for cid in (public.cid, strange):
        answer = await api.put(f"{path}/{cid}")
        assert status_and_body(answer) == (404, {"error": {"code": 404, "message": "File not found"}})
    for cid in ("x", "x" * 600, public.cid[:-1]):
        assert (await api.put(f"{path}/{cid}")).status_code == 400
    assert (await api.get(f"{path}?limit=1001")).status_code == 400


async def test_another_tenant_finds_nothing(server: RunningServer, api: httpx.AsyncClient, tenant: str) -> None:
    created, foreign = await create(api), server.client(server.key("foreign"), "api.localhost")
    cid = await add_file(server, tenant, b"mine")
    await add_file(server, "foreign", b"mine")
    path = f"{ROOT}/{created['id']}"
    await api.put(f"{path}/cids/{cid}")
    for answer in (
        await foreign.get(path),
        await foreign.patch(path, json={"name": "mine"}),
        await foreign.delete(path),
        await foreign.get(f"{path}/cids"),
        await foreign.put(f"{path}/cids/{cid}"),
        await foreign.delete(f"{path}/cids/{cid}"),
    ):
        assert status_and_body(answer) == UNKNOWN
    for query in ({}, {"id": created["id"]}, {"cid": cid}):
        assert (await foreign.get(ROOT, params=query)).json()["data"]["payment_instructions"] == []
    theirs = await create(foreign)
    assert (await foreign.put(f"{ROOT}/{theirs['id']}/cids/{cid}")).status_code == 200
    assert (await api.get(f"{path}/cids")).json()["data"]["cids"] == [cid]
    assert (await api.get(path)).json()["data"] == created


async def test_of_two_at_once_one_is_attached(server: RunningServer, api: httpx.AsyncClient, tenant: str) -> None:
    created, cid = [await create(api) for _ in range(3)], await add_file(server, tenant)
    updates = [api.patch(f"{ROOT}/{one['id']}", json={"name": "new"}) for one in created]
    answers = await asyncio.gather(*(api.put(f"{ROOT}/{one['id']}/cids/{cid}") for one in created), *updates)
    assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 200, 409, 409]
    (winner,) = (await api.get(ROOT, params={"cid": cid})).json()["data"]["payment_instructions"]
    assert (winner["name"], winner["version"]) == ("new", 2)
    listed = [(await api.get(f"{ROOT}/{one['id']}/cids")).json()["data"]["cids"] for one in created]
    assert sorted(listed) == [[], [], [cid]]


@pytest.mark.parametrize(
    ("scope", "read", "write"),
    [
        ("org:files:read", 200, 403),
        ("org:files:write", 200, 200),
        ("org:read", 200, 403),
        ("org:write", 200, 200),
        ("org:groups:write", 403, 403),
    ],
)
async def test_instructions_need_their_scopes(server: RunningServer, scope: str, read: int, write: int) -> None:
    api = server.client(server.key("scopes", scopes=frozenset({scope})), "api.localhost")
    assert (await api.get(ROOT)).status_code == read
    body = {"name": "n", "payment_requirements": [CENT]}
    assert (await api.post(ROOT, json=body)).status_code == write
