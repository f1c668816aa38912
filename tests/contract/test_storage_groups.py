"""Groups over HTTP (contract, Storage API, operation 3): shapes, scopes, tenants, statuses."""

import json
import re
from typing import Any

import httpx2 as httpx
import pytest

from roost.storage.content.model import ContentNetwork
from tests.contract.endpoints import CONTRACT, needs_contract, routes
from tests.contract.storage import keep
from tests.support.server import RunningServer

UNKNOWN = (404, {"error": {"code": 404, "message": "Group not found"}})


def status_and_body(answer: httpx.Response) -> tuple[int, Any]:
    return answer.status_code, answer.json()


async def create(api: httpx.AsyncClient, network: str = "private", **body: Any) -> dict[str, Any]:
    answer = await api.post(f"/v3/groups/{network}", json={"name": "photos", **body})
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


@needs_contract
def test_the_contracts_operations_are_here() -> None:
    table = json.loads((CONTRACT / "endpoints.json").read_text())
    kept = ("/v3/groups/{network}/{id}", "/v3/ipfs/gateway_plugins/{gateway_id}", "/v3/files/{network}/signature/{cid}")
    wanted = {(row["method"], row["path"]): row["scope"] for row in table if row["path"] in kept}
    assert len(wanted) == 3
    here = routes()
    assert {key: here[key]["credentials"] for key in wanted} == {key: [scope] for key, scope in wanted.items()}


async def test_a_group_comes_and_goes(api: httpx.AsyncClient) -> None:
    made = await create(api, is_public=True)
    assert made.keys() == {"id", "name", "is_public", "created_at"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", made["created_at"])
    path = f"/v3/groups/private/{made['id']}"
    got = await api.get(path)
    assert status_and_body(got) == (200, {"data": made})
    assert got.headers["content-type"] == "application/json; charset=utf-8"
    assert got.headers["x-request-id"]
    renamed = await api.put(path, json={"name": "pictures"})
    assert status_and_body(renamed) == (200, {"data": {**made, "name": "pictures"}})
    listed = await api.get("/v3/groups/private")
    assert status_and_body(listed) == (200, {"data": {"groups": [renamed.json()["data"]], "next_page_token": ""}})
    gone = await api.delete(path)
    assert (status_and_body(gone), gone.reason_phrase) == ((200, {"data": None}), "OK")
    assert status_and_body(await api.get(path)) == UNKNOWN
    assert status_and_body(await api.delete(path)) == UNKNOWN


async def test_pages_and_filters(api: httpx.AsyncClient) -> None:
    for number in range(5):
        await create(api, "public", name=f"g{number}", is_public=number == 0)
    seen: list[str] = []
    token = ""
    while True:
        page = await api.get("/v3/groups/public", params={"limit": 2} | ({"pageToken": token} if token else {}))
        data = page.json()["data"]
        seen += [group["name"] for group in data["groups"]]
        if not (token := data["next_page_token"]):
            break
    assert seen == ["g4", "g3", "g2", "g1", "g0"]
    for query, names in (({"isPublic": "true"}, ["g0"]), ({"name": "g3"}, ["g3"]), ({"name": "_"}, [])):
        found = (await api.get("/v3/groups/public", params=query)).json()["data"]["groups"]
        assert [group["name"] for group in found] == names


@pytest.mark.parametrize(
    "body", [{}, {"name": ""}, {"name": " "}, {"name": "x" * 101}, {"name": "a\0b"}, {"name": 1}, [], "x"]
)
async def test_malformed_groups_are_refused(api: httpx.AsyncClient, body: Any) -> None:
    answer = await api.post("/v3/groups/private", json=body)
    assert answer.status_code == 400
    assert answer.json()["error"].keys() == {"code", "message"}


@pytest.mark.parametrize(
    "path",
    [
        *("/v3/groups/secret", "/v3/groups/PRIVATE", "/v3/groups/private?limit=0", "/v3/groups/private?limit=1001"),
        *("/v3/groups/private?pageToken=x", "/v3/groups/private?isPublic=maybe", "/v3/groups/private?limit=x"),
    ],
)
async def test_malformed_list_queries_are_refused(api: httpx.AsyncClient, path: str) -> None:
    assert (await api.get(path)).status_code == 400


async def test_files_in_a_group(server: RunningServer, api: httpx.AsyncClient, request: pytest.FixtureRequest) -> None:
    file = await keep(server, request.node.name[:90], ContentNetwork.PRIVATE, b"one")
    made, other = await create(api), await create(api)
    path = f"/v3/groups/private/{made['id']}/ids/{file.id}"

    async def group_of() -> str | None:
        return (
            await server.roost.storage.files.files.get(file.tenant_id, ContentNetwork.PRIVATE, file.id)
        ).metadata.group_id

    assert status_and_body(await api.put(path)) == (200, {"data": None})
    assert await group_of() == made["id"]
    assert (await api.delete(path.replace(made["id"], other["id"]))).status_code == 404
    assert await group_of() == made["id"]
    assert status_and_body(await api.delete(path)) == (200, {"data": None})
    assert await group_of() is None
    await api.put(path)
    assert (await api.delete(f"/v3/groups/private/{made['id']}")).status_code == 200
    assert await group_of() is None
    assert (await api.put(path)).status_code == 404
    assert (await api.put(f"/v3/groups/private/{other['id']}/ids/nothing")).status_code == 404
    assert (await api.put(f"/v3/groups/public/{other['id']}/ids/{file.id}")).status_code == 404


async def test_another_tenant_finds_nothing(server: RunningServer, api: httpx.AsyncClient) -> None:
    made, foreign = await create(api), server.client(server.key("foreign"), "api.localhost")
    path = f"/v3/groups/private/{made['id']}"
    for answer in (
        await foreign.get(path),
        await foreign.put(path, json={"name": "mine"}),
        await foreign.delete(path),
        await api.get(path.replace("private", "public")),
    ):
        assert status_and_body(answer) == UNKNOWN
    assert (await foreign.get("/v3/groups/private")).json()["data"]["groups"] == []
    assert (await api.get(path)).json()["data"] == made


@pytest.mark.parametrize(
    ("scope", "read", "write"),
    [
        ("org:groups:read", 200, 403),
        ("org:groups:write", 200, 200),
        ("org:read", 200, 403),
        ("org:write", 200, 200),
        ("org:files:write", 403, 403),
        ("org:agents:write", 403, 403),
    ],
)
async def test_groups_need_their_scopes(server: RunningServer, scope: str, read: int, write: int) -> None:
    api = server.client(server.key("scopes", scopes=frozenset({scope})), "api.localhost")
    assert (await api.get("/v3/groups/private")).status_code == read
    assert (await api.post("/v3/groups/private", json={"name": "g"})).status_code == write


async def test_who_has_no_key(server: RunningServer, api: httpx.AsyncClient) -> None:
    for token in (None, "x", "a.b.c"):
        answer = await server.client(token, "api.localhost").get("/v3/groups/private")
        assert answer.status_code == 401
        assert answer.json()["error"]["code"] == 401
    key = api.headers["authorization"].removeprefix("Bearer ")
    for address in ("agents.localhost", "shop.gateways.localhost"):
        assert (await server.client(key, address).get("/v3/groups/private")).status_code in {401, 404}
    for address in ("uploads.localhost", "localhost"):
        assert (await server.client(key, address).get("/v3/groups/private")).status_code == 200
