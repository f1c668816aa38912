"""The IPFS Pinning Service API 1.0.0, by its specification."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2 as httpx
import pytest

from roost.storage.content.unixfs.cid import DAG_CBOR, RAW, Cid
from roost.storage.content.unixfs.profile import V0
from tests.conformance.car_server import CarServer, serve_cars
from tests.storage.cars import blocks_of, encode_car
from tests.support.server import RunningServer, running

TREE, BLOCKS = blocks_of(V0, b"pinned from elsewhere")
CID = str(TREE.cid)
NOWHERE = str(Cid.for_block(RAW, b"nobody has it"))


@pytest.fixture(scope="module")
async def source() -> AsyncIterator[CarServer]:
    async with serve_cars({CID: encode_car([TREE.cid], BLOCKS)}) as server:
        yield server


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory, source: CarServer) -> AsyncIterator[RunningServer]:
    folder = tmp_path_factory.mktemp("d") / "data"
    async with running(folder, ROOST_NETWORK="trustless", ROOST_NETWORK_URLS=source.url) as server:
        yield server


async def add(api: httpx.AsyncClient, path: str = "/psa/pins", **body: Any) -> dict[str, Any]:
    answer = await api.post(path, json=body)
    assert answer.status_code == 202, answer.text
    return answer.json()


async def until(api: httpx.AsyncClient, request_id: str, status: str) -> dict[str, Any]:
    async with asyncio.timeout(30):
        while (now := (await api.get(f"/psa/pins/{request_id}")).json())["status"] != status:
            await asyncio.sleep(0.05)
    return now


async def ids(api: httpx.AsyncClient, **query: Any) -> list[str]:
    answer = await api.get("/psa/pins", params=query)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["count"] >= len(found["results"])
    return [one["requestid"] for one in found["results"]]


async def test_pinned_and_taken_back(api: httpx.AsyncClient) -> None:
    origins = ["/dns4/peer.example/tcp/4001/p2p/QmPeer"]
    made = await add(api, cid=CID, name="n", origins=origins, meta={"app": "x"})
    pin = {"cid": CID, "name": "n", "origins": origins, "meta": {"app": "x"}}
    assert (made["status"], made["pin"], made["delegates"], made["info"]) == ("queued", pin, [], {})
    done = await until(api, made["requestid"], "pinned")
    assert (done["pin"], done["created"]) == (pin, made["created"])
    assert await ids(api) == await ids(api, cid=f"{NOWHERE},{TREE.cid.v1()}") == [made["requestid"]]
    (file,) = (await api.get("/v3/files/public")).json()["data"]["files"]
    assert (file["cid"], file["name"]) == (CID, "n")
    gone = await api.delete(f"/psa/pins/{made['requestid']}")
    assert (gone.status_code, gone.content) == (202, b"")
    assert await ids(api) == []
    assert (await api.get("/v3/files/public")).json()["data"]["files"] == []
    assert (await api.get(f"/psa/pins/{made['requestid']}")).status_code == 404


async def test_replaced_pin_has_a_new_id(api: httpx.AsyncClient) -> None:
    first = await add(api, cid=NOWHERE)
    second = await add(api, f"/psa/pins/{first['requestid']}", cid=CID, name="two")
    assert second["requestid"] != first["requestid"]
    await until(api, second["requestid"], "pinned")
    assert await ids(api, status="queued,pinning,pinned,failed") == [second["requestid"]]


async def test_one_cid_twice_are_two_requests(api: httpx.AsyncClient) -> None:
    """With different times, by which clients page."""
    made = [await add(api, cid=NOWHERE) for _ in range(12)]
    assert len({one["requestid"] for one in made}) == len({one["created"] for one in made}) == 12
    assert await ids(api, status="queued,pinning") == [one["requestid"] for one in made[:1:-1]]


async def test_as_many_metadata_as_the_specification_has(api: httpx.AsyncClient) -> None:
    meta = {f"key {number}": str(number) for number in range(1000)}
    made = await add(api, cid=NOWHERE, meta=meta)
    assert (await api.get(f"/psa/pins/{made['requestid']}")).json()["pin"]["meta"] == meta
    assert (await api.post("/psa/pins", json={"cid": NOWHERE, "meta": {**meta, "one more": ""}})).status_code == 400


async def test_failed_pin_tells_its_reason(api: httpx.AsyncClient) -> None:
    made = await add(api, cid=str(Cid.for_block(DAG_CBOR, b"x")))
    failed = await until(api, made["requestid"], "failed")
    assert failed["info"] == {"status_details": "invalid_object"}
    assert await ids(api, status="failed") == [made["requestid"]]


async def test_lists_are_filtered_by_name_and_meta(api: httpx.AsyncClient) -> None:
    made = [await add(api, cid=NOWHERE, name=f"Pin {n}", meta={"n": str(n)}) for n in range(3)]
    names = [one["requestid"] for one in made]
    waiting = {"status": "queued,pinning"}
    assert await ids(api) == []
    assert await ids(api, **waiting) == names[::-1]
    assert (await api.get("/psa/pins", params={"limit": 1, **waiting})).json()["count"] == 3
    assert await ids(api, before=made[1]["created"], **waiting) == names[:1]
    assert await ids(api, after=made[1]["created"], **waiting) == names[2:]
    assert await ids(api, name="pin 1", match="iexact", **waiting) == names[1:2]
    assert await ids(api, name="pin 1", **waiting) == await ids(api, name="in", match="exact", **waiting) == []
    assert await ids(api, name="in 1", match="partial", **waiting) == names[1:2]
    assert await ids(api, name="IN 1", match="ipartial", **waiting) == names[1:2]
    assert await ids(api, meta=json.dumps({"n": "2"}), **waiting) == names[2:]


@pytest.mark.parametrize(
    "query",
    [
        *({"limit": 0}, {"limit": 1001}, {"status": "x"}, {"cid": ",".join([NOWHERE] * 11)}, {"cid": "x"}),
        *({"match": "x"}, {"meta": "[]"}, {"meta": "{"}, {"meta": '{"a":1}'}, {"before": "x"}, {"name": "n" * 256}),
    ],
)
async def test_queries_that_are_not_understood(api: httpx.AsyncClient, query: dict[str, Any]) -> None:
    answer = await api.get("/psa/pins", params=query)
    assert (answer.status_code, sorted(answer.json()["error"])) == (400, ["details", "reason"])


@pytest.mark.parametrize(
    "body",
    [
        *({}, {"cid": "x"}, {"cid": CID, "name": "n" * 256}, {"cid": CID, "origins": ["/dns4/a"] * 21}),
        {"cid": CID, "meta": {"a": 1}},
    ],
)
async def test_bodies_that_are_not_understood(api: httpx.AsyncClient, body: dict[str, Any]) -> None:
    assert (await api.post("/psa/pins", json=body)).status_code == 400


async def test_pins_of_others_are_not_found(api: httpx.AsyncClient, server: RunningServer) -> None:
    made = await add(api, cid=NOWHERE)
    path = f"/psa/pins/{made['requestid']}"
    other = server.client(server.key("somebody else"), "api.localhost")
    reader = server.client(server.key("reads", scopes=frozenset({"org:files:read"})), "api.localhost")
    for answer in (await other.get(path), await other.delete(path), await other.post(path, json={"cid": CID})):
        assert (answer.status_code, sorted(answer.json()["error"])) == (404, ["details", "reason"])
    assert [(await reader.get("/psa/pins")).status_code, (await reader.delete(path)).status_code] == [200, 403]
    assert (await reader.post("/psa/pins", json={"cid": CID})).status_code == 403
    assert (await server.client(host="api.localhost").get("/psa/pins")).status_code == 401
