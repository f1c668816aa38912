"""Pins by CID over HTTP, with a fake trustless gateway as the source."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2 as httpx
import pytest

from roost.storage.content.unixfs.cid import DAG_CBOR, Cid
from roost.storage.content.unixfs.profile import V1
from tests.conformance.car_server import CarServer, serve_cars
from tests.storage.cars import blocks_of, encode_car
from tests.support.server import RunningServer, running

CARS = {
    str(tree.cid): encode_car([tree.cid], blocks)
    for tree, blocks in (blocks_of(V1, f"file {number} ".encode() * 1000) for number in range(3))
}
HERE, MORE, THIRD = CARS
NOWHERE = str(Cid.for_block(0x55, b"nobody has it"))
PATH = "/v3/files/public/pin_by_cid"


@pytest.fixture(scope="module")
async def source() -> AsyncIterator[CarServer]:
    async with serve_cars(CARS) as server:
        yield server


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory, source: CarServer) -> AsyncIterator[RunningServer]:
    folder = tmp_path_factory.mktemp("d") / "data"
    async with running(folder, ROOST_NETWORK="trustless", ROOST_NETWORK_URLS=f"{source.url}/") as server:
        yield server


async def pin_by_cid(api: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    answer = await api.post(PATH, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


async def jobs(api: httpx.AsyncClient, **query: Any) -> list[dict[str, Any]]:
    answer = await api.get(PATH, params={"includesCount": "false", **query})
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]["jobs"]


async def wait_until_removed(api: httpx.AsyncClient, pin_id: str) -> None:
    """Wait until a request has left the queue."""
    async with asyncio.timeout(30):
        while pin_id in [job["id"] for job in await jobs(api)]:
            await asyncio.sleep(0.05)


async def until(api: httpx.AsyncClient, pin_id: str, status: str) -> None:
    async with asyncio.timeout(30):
        while [job["status"] for job in await jobs(api) if job["id"] == pin_id] != [status]:
            await asyncio.sleep(0.05)


async def test_it_becomes_a_file(api: httpx.AsyncClient) -> None:
    made = await pin_by_cid(api, cid=HERE, name="theirs", keyvalues={"a": "b"}, host_nodes=None)
    assert made == {
        "id": made["id"],
        "cid": HERE,
        "name": "theirs",
        "status": "prechecking",
        "keyvalues": {"a": "b"},
        "host_nodes": None,
        "group_id": None,
        "date_queued": made["date_queued"],
    }
    await wait_until_removed(api, made["id"])
    (file,) = (await api.get("/v3/files/public", params={"cid": HERE})).json()["data"]["files"]
    assert (file["name"], file["keyvalues"], file["size"]) == ("theirs", {"a": "b"}, 7000)
    assert (await api.get("/v3/files/private")).json()["data"]["files"] == []


async def test_into_a_group(api: httpx.AsyncClient) -> None:
    group = (await api.post("/v3/groups/public", json={"name": "g"})).json()["data"]["id"]
    await wait_until_removed(api, (await pin_by_cid(api, cid=MORE, group_id=group))["id"])
    (file,) = (await api.get("/v3/files/public", params={"group": group})).json()["data"]["files"]
    assert file["cid"] == MORE


async def test_the_queue_in_pages(api: httpx.AsyncClient) -> None:
    made = [(await pin_by_cid(api, cid=NOWHERE, name=str(number)))["id"] for number in range(3)]
    first = (await api.get(PATH, params={"limit": 2, "sort": "ASC"})).json()["data"]
    assert [job["id"] for job in first["jobs"]] == made[:2]
    query = {"limit": 2, "sort": "ASC", "pageToken": first["next_page_token"]}
    second = (await api.get(PATH, params=query)).json()["data"]
    assert ([job["id"] for job in second["jobs"]], second["next_page_token"]) == (made[2:], "")
    for order in ({"sort": "DSC"}, {"sort": "DESC"}, {}):
        assert [job["id"] for job in await jobs(api, **order)] == made[::-1]
    assert await jobs(api, cid=HERE) == []
    assert len(await jobs(api, cid=NOWHERE)) == 3
    await until(api, made[0], "searching")
    assert made[0] in [job["id"] for job in await jobs(api, status="searching")]
    assert await jobs(api, status="retrieving") == await jobs(api, status="over_free_limit") == []


async def test_deleted_job_is_gone(api: httpx.AsyncClient) -> None:
    made = await pin_by_cid(api, cid=NOWHERE)
    answer = await api.delete(f"{PATH}/{made['id']}")
    assert (answer.status_code, answer.json()) == (200, {"data": None})
    assert await jobs(api) == []
    assert (await api.delete(f"{PATH}/{made['id']}")).status_code == 404


async def test_of_another_tenant_nothing_is_seen(api: httpx.AsyncClient, server: RunningServer) -> None:
    made = await pin_by_cid(api, cid=NOWHERE)
    other = server.client(server.key("somebody else"), "api.localhost")
    theirs, unknown = [await other.delete(f"{PATH}/{one}") for one in (made["id"], "0" * 36)]
    assert (theirs.status_code, theirs.json()) == (unknown.status_code, unknown.json())
    assert theirs.json() == {"error": {"code": 404, "message": "Pin request not found"}}
    assert await jobs(other) == []


async def test_failed_pins_tell_their_reason(api: httpx.AsyncClient) -> None:
    invalid = await pin_by_cid(api, cid=str(Cid.for_block(DAG_CBOR, b"x")))
    bad = await pin_by_cid(api, cid=HERE, host_nodes=["peer.example"])
    await until(api, invalid["id"], "invalid_object")
    await until(api, bad["id"], "bad_host_node")


@pytest.mark.parametrize(
    "body",
    [
        *({}, {"cid": "x"}, {"cid": HERE, "name": "n" * 256}, {"cid": HERE, "keyvalues": {"a": []}}),
        *({"cid": HERE, "keyvalues": 1}, {"cid": HERE, "host_nodes": ["/dns4/a"] * 21}, {"cid": HERE, "name": "a\0"}),
    ],
)
async def test_malformed_pins_are_refused(api: httpx.AsyncClient, body: dict[str, Any]) -> None:
    answer = await api.post(PATH, json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, 400)


@pytest.mark.parametrize("query", [{"limit": 251}, {"limit": 0}, {"status": "x"}, {"sort": "x"}, {"pageToken": "x"}])
async def test_queries_that_are_not_understood(api: httpx.AsyncClient, query: dict[str, Any]) -> None:
    assert (await api.get(PATH, params=query)).status_code == 400


async def test_a_group_that_is_not_theirs(api: httpx.AsyncClient) -> None:
    assert (await api.post(PATH, json={"cid": HERE, "group_id": "0" * 36})).status_code == 404


async def test_pins_need_their_scopes(server: RunningServer) -> None:
    reader = server.client(server.key("scopes", scopes=frozenset({"org:files:read"})), "api.localhost")
    nobody = server.client(server.key("scopes", scopes=frozenset({"org:groups:read"})), "api.localhost")
    assert (await reader.get(PATH)).status_code == 200
    for path in (PATH, "/pinning/pinByHash"):
        assert (await reader.post(path, json={"cid": HERE, "hashToPin": HERE})).status_code == 403
    for path in (PATH, "/pinning/pinJobs"):
        assert (await nobody.get(path)).status_code == 403


async def test_the_legacy_form(api: httpx.AsyncClient) -> None:
    body = {"hashToPin": THIRD, "pinataMetadata": {"name": "old", "keyvalues": {"k": "v"}}, "pinataOptions": {}}
    made = (await api.post("/pinning/pinByHash", json=body)).json()
    assert made == {"id": made["id"], "ipfsHash": THIRD, "status": "prechecking", "name": "old"}
    await wait_until_removed(api, made["id"])
    assert (await api.get("/pinning/pinJobs")).json() == {"count": 0, "rows": []}
    for number in range(3):
        body = {"hashToPin": NOWHERE, "pinataMetadata": {"name": str(number)}}
        assert (await api.post("/pinning/pinByHash", json=body)).status_code == 200
    listed = (await api.get("/pinning/pinJobs", params={"limit": 2, "offset": 1, "sort": "ASC"})).json()
    assert (listed["count"], [row["name"] for row in listed["rows"]]) == (3, ["1", "2"])
    assert {row["ipfs_pin_hash"] for row in listed["rows"]} == {NOWHERE}
