"""The older shapes of the storage API: groups by CID, paths without a network, filters of the old list."""

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2 as httpx
import pytest

from roost.storage.content.model import ContentNetwork
from roost.storage.files.model import File
from roost.web import responses
from tests.contract.storage import keep
from tests.support.server import RunningServer

NO_GROUP = (404, {"error": {"reason": "NOT_FOUND", "details": "Group not found"}})
NO_FILE = (404, {"error": {"reason": "NOT_FOUND", "details": "File not found"}})
NOT_PINNED = {
    "error": {
        "reason": "CURRENT_USER_HAS_NOT_PINNED_CID",
        "details": "The current user has not pinned the provided CID",
    }
}
STRANGE = "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku"
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z")


@pytest.fixture
def tenant(request: pytest.FixtureRequest) -> str:
    """Return a tenant of this test only."""
    return hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:30]


def status_and_body(answer: httpx.Response) -> tuple[int, Any]:
    return answer.status_code, answer.json()


async def public(server: RunningServer, tenant: str, *contents: str) -> list[File]:
    return [await keep(server, tenant, ContentNetwork.PUBLIC, content.encode()) for content in contents]


async def members(api: httpx.AsyncClient, group: Mapping[str, Any]) -> set[str]:
    answer = await api.get("/data/pinList", params={"groupId": group["id"], "status": "pinned"})
    return {row["ipfs_pin_hash"] for row in answer.json()["rows"]}


async def test_a_group_of_the_old_api(api: httpx.AsyncClient, tenant: str) -> None:
    made = (await api.post("/groups", json={"name": "birds"})).json()
    assert made.keys() == {"id", "user_id", "name", "createdAt", "updatedAt"}
    assert MOMENT.fullmatch(made["createdAt"])
    assert made["createdAt"] == made["updatedAt"]
    path = f"/groups/{made['id']}"
    assert status_and_body(await api.get(path)) == (200, made)
    assert status_and_body(await api.get(f"/v3/groups/public/{made['id']}"))[0] == 200
    assert status_and_body(await api.get(f"/v3/groups/private/{made['id']}"))[0] == 404
    renamed = (await api.put(path, json={"name": "owls"})).json()
    assert renamed == {**made, "name": "owls", "updatedAt": renamed["updatedAt"]}
    assert renamed["updatedAt"] > made["updatedAt"]
    gone = await api.delete(path)
    assert (gone.status_code, gone.text, gone.headers["content-type"]) == (200, "OK", "text/plain; charset=utf-8")
    for again in (await api.get(path), await api.put(path, json={"name": "x"}), await api.delete(path)):
        assert status_and_body(again) == NO_GROUP


async def test_old_groups_are_listed_by_offset_and_name(api: httpx.AsyncClient) -> None:
    for name in ("owls", "herons", "night owls"):
        await api.post("/groups", json={"name": name})
    await api.post("/v3/groups/private", json={"name": "secret owls"})

    async def names(**query: Any) -> list[str]:
        return [row["name"] for row in (await api.get("/groups", params=query)).json()]

    assert await names() == ["night owls", "herons", "owls"]
    assert await names(limit=1, offset=1) == ["herons"]
    assert await names(nameContains="OWL") == ["night owls", "owls"]
    assert await names(offset=3) == []
    for wrong in ({"limit": 0}, {"limit": 1001}, {"offset": -1}, {"limit": "x"}):
        status, body = status_and_body(await api.get("/groups", params=wrong))
        assert (status, body["error"]["reason"]) == (400, "INVALID_REQUEST")


async def test_pins_go_into_old_groups_and_out_all_or_none(
    server: RunningServer, api: httpx.AsyncClient, tenant: str
) -> None:
    one, two = (file.cid for file in await public(server, tenant, "one", "two"))
    hidden = (await keep(server, tenant, ContentNetwork.PRIVATE, b"hidden")).cid
    group = (await api.post("/groups", json={"name": "some"})).json()
    other = (await api.post("/groups", json={"name": "other"})).json()
    path = f"/groups/{group['id']}/cids"

    for strange in (STRANGE, hidden):
        assert status_and_body(await api.put(path, json={"cids": [one, strange]})) == NO_FILE
    assert await members(api, group) == set()
    added = await api.put(path, json={"cids": [one, two, one]})
    assert (added.status_code, added.text) == (200, "OK")
    assert await members(api, group) == {one, two}
    await api.put(f"/groups/{other['id']}/cids", json={"cids": [two]})  # a file is in one group at most
    assert (await members(api, group), await members(api, other)) == ({one}, {two})
    assert status_and_body(await api.request("DELETE", path, json={"cids": [one, two]})) == NO_FILE
    assert await members(api, group) == {one}
    taken = await api.request("DELETE", path, json={"cids": [one]})
    assert (taken.status_code, taken.text) == (200, "OK")
    assert (await members(api, group), await members(api, other)) == (set(), {two})
    assert status_and_body(await api.put("/groups/none/cids", json={"cids": [one]})) == NO_GROUP
    for wrong in ({"cids": []}, {"cids": [one] * 1001}, {"cids": "x"}, {}, {"cids": ["no cid"]}):
        assert status_and_body(await api.put(path, json=wrong))[0] == 400


async def test_old_groups_keep_to_their_tenant_and_scopes(
    server: RunningServer, api: httpx.AsyncClient, tenant: str
) -> None:
    group = (await api.post("/groups", json={"name": "mine"})).json()
    [file] = await public(server, f"{tenant}2", "theirs")
    other = server.client(server.key(f"{tenant}2"), "api.localhost")
    assert (await other.get("/groups")).json() == []
    assert status_and_body(await other.get(f"/groups/{group['id']}")) == NO_GROUP
    assert status_and_body(await other.put(f"/groups/{group['id']}/cids", json={"cids": [file.cid]})) == NO_GROUP
    assert status_and_body(await other.delete(f"/groups/{group['id']}")) == NO_GROUP
    reader = server.client(server.key(tenant, scopes=frozenset({"org:groups:read"})), "api.localhost")
    assert status_and_body(await reader.get(f"/groups/{group['id']}"))[0] == 200
    refused = await reader.post("/groups", json={"name": "x"})
    assert (refused.status_code, refused.json()["error"]["reason"]) == (403, "NO_SCOPES_FOUND")
    stranger = server.client(None, "api.localhost")
    refused = await stranger.get("/groups")
    assert (refused.status_code, refused.json()["error"]["reason"]) == (401, "INVALID_CREDENTIALS")


async def test_paths_without_a_network_are_of_private_files(
    server: RunningServer, api: httpx.AsyncClient, tenant: str
) -> None:
    private = await keep(server, tenant, ContentNetwork.PRIVATE, b"private")
    [shown] = await public(server, tenant, "public")
    assert status_and_body(await api.get("/v3/files")) == status_and_body(await api.get("/v3/files/private"))
    assert [row["id"] for row in (await api.get("/v3/files", params={"cid": private.cid})).json()["data"]["files"]] == [
        private.id
    ]
    assert status_and_body(await api.get(f"/v3/files/{private.id}")) == status_and_body(
        await api.get(f"/v3/files/private/{private.id}")
    )
    assert status_and_body(await api.get(f"/v3/files/{shown.id}"))[0] == 404
    changed = await api.put(f"/v3/files/{private.id}", json={"name": "renamed"})
    assert changed.json()["data"]["name"] == "renamed"
    group = (await api.post("/v3/files/groups", json={"name": "g"})).json()["data"]
    assert status_and_body(await api.get(f"/v3/groups/private/{group['id']}")) == (200, {"data": group})
    assert [row["id"] for row in (await api.get("/v3/files/groups")).json()["data"]["groups"]] == [group["id"]]
    assert status_and_body(await api.get(f"/v3/files/groups/{group['id']}")) == (200, {"data": group})
    assert (await api.put(f"/v3/files/groups/{group['id']}", json={"name": "h"})).json()["data"]["name"] == "h"
    member = f"/v3/files/groups/{group['id']}/ids/{private.id}"
    assert status_and_body(await api.put(member)) == (200, {"data": None})
    assert (await api.get(f"/v3/files/{private.id}")).json()["data"]["group_id"] == group["id"]
    assert status_and_body(await api.delete(member)) == (200, {"data": None})
    for path in (f"/v3/files/groups/{group['id']}", f"/v3/files/{private.id}"):
        gone = await api.delete(path)
        assert (status_and_body(gone), gone.reason_phrase) == ((200, {"data": None}), "OK")
        assert status_and_body(await api.get(path))[0] == 404
    assert status_and_body(await api.get("/v3/files/neither"))[0] == 400


@pytest.mark.parametrize("path", ["/v3/files/{}", "/v3/files/private/{}", "/groups/{}/cids", "/groups/{}"])
async def test_other_bodies_than_uploads_have_the_usual_limit(
    server: RunningServer, api: httpx.AsyncClient, tenant: str, path: str
) -> None:
    file = await keep(server, tenant, ContentNetwork.PRIVATE, b"private")

    async def endless() -> AsyncIterator[bytes]:
        yield b'{"name": "'
        for _ in range(1025):
            yield b"x" * 1024
        yield b'"}'

    assert (await api.put(path.format(file.id), content=endless())).status_code == 413


async def test_swaps_under_their_old_paths(server: RunningServer, api: httpx.AsyncClient, tenant: str) -> None:
    for network, path in ((ContentNetwork.PRIVATE, "/v3/files/swap/"), (ContentNetwork.PUBLIC, "/v3/ipfs/swap/")):
        asked, served = [await keep(server, tenant, network, text) for text in (b"asked for", b"served")]
        field = "mapped_cid" if network is ContentNetwork.PRIVATE else "mappedCid"
        made = await api.put(path + asked.cid, json={"swapCid": served.cid})
        assert made.status_code == 200
        assert made.json()["data"][field] == served.cid
        assert status_and_body(await api.get(path + asked.cid)) == (200, {"data": [made.json()["data"]]})
        now = (await api.get(f"/v3/files/{network}/swap/{asked.cid}")).json()["data"]
        assert [row["mapped_cid"] for row in now] == [served.cid]
        assert status_and_body(await api.get(path + asked.cid, params={"domain": "nobodys"}))[0] == 404
        gone = await api.delete(path + asked.cid)
        assert (status_and_body(gone), gone.reason_phrase) == ((200, {"data": None}), "OK")
        history = (await api.get(path + asked.cid)).json()["data"]
        assert [row[field] for row in history] == [None, served.cid]
        assert status_and_body(await api.put(path + STRANGE, json={"swapCid": served.cid}))[0] == 404


async def test_signatures_under_their_old_path_are_of_public_files(
    server: RunningServer, api: httpx.AsyncClient, tenant: str
) -> None:
    [file] = await public(server, tenant, "signed")
    old, now = f"/v3/ipfs/signature/{file.cid}", f"/v3/files/public/signature/{file.cid}"
    for method, body in (("GET", None), ("DELETE", None), ("POST", {"signature": "0x00", "address": "0x00"})):
        answers = [await api.request(method, path, json=body) for path in (old, now)]
        assert status_and_body(answers[0]) == status_and_body(answers[1])
        assert answers[0].status_code in {400, 404}
    bare = await api.post(old, json={"signature": "0x00"})
    assert status_and_body(bare) == (400, {"error": {"code": 400, "message": "address: Field required"}})


PAIRS: Mapping[str, Mapping[str, Any]] = {
    "a": {"n": 9, "day": "2024-01-05", "word": "Apple"},
    "b": {"n": 10, "day": "2024-02-05", "word": "apricot"},
    "c": {"n": -2.5, "day": "2025-01-01", "word": "50%"},
    "d": {"n": "no number", "word": "50"},
    "e": {"n": "11"},
}


@pytest.mark.parametrize(
    ("key", "condition", "wanted"),
    [
        ("n", {"value": 9, "op": "eq"}, "a"),
        ("n", {"value": 9}, "a"),
        ("n", {"value": 9, "op": "ne"}, "bcde"),
        ("n", {"value": 9, "op": "gt"}, "be"),
        ("n", {"value": 9, "op": "gte"}, "abe"),
        ("n", {"value": 9, "op": "lt"}, "c"),
        ("n", {"value": 9, "op": "lte"}, "ac"),
        ("n", {"value": -3, "op": "between", "secondValue": 9}, "ac"),
        ("n", {"value": -3, "op": "notBetween", "secondValue": 9}, "be"),
        ("day", {"value": "2024-02", "op": "gt"}, "bc"),
        ("day", {"value": "2024-01-05", "op": "between", "secondValue": "2024-12-31"}, "ab"),
        ("word", {"value": "ap%", "op": "like"}, "b"),
        ("word", {"value": "ap%", "op": "iLike"}, "ab"),
        ("word", {"value": "ap%", "op": "notLike"}, "acd"),
        ("word", {"value": "AP%", "op": "notILike"}, "cd"),
    ],
)
async def test_operators_of_the_old_list(
    server: RunningServer, api: httpx.AsyncClient, key: str, condition: Mapping[str, Any], wanted: str
) -> None:
    for name, pairs in PAIRS.items():
        body = {"pinataContent": {"is": name}, "pinataMetadata": {"name": name, "keyvalues": pairs}}
        assert (await api.post("/pinning/pinJSONToIPFS", json=body)).status_code == 200
    query = {"metadata[keyvalues]": json.dumps({key: condition})}
    rows = (await api.get("/data/pinList", params=query)).json()["rows"]
    assert "".join(sorted(row["metadata"]["name"] for row in rows)) == wanted


@pytest.mark.parametrize(
    "wrong",
    [
        {"metadata[keyvalues]": json.dumps({"n": {"value": ".*", "op": "regexp"}})},
        {"metadata[keyvalues]": json.dumps({"n": {"value": 1, "op": "between"}})},
        {"metadata[keyvalues]": json.dumps({"n": {"value": 1, "op": "between", "secondValue": "x"}})},
        {"metadata[keyvalues]": json.dumps({"n": {"op": "gt"}})},
        {"metadata[keyvalues]": json.dumps({"n": {"value": [1], "op": "gt"}})},
        {"metadata[keyvalues]": "no json"},
        {"metadata[keyvalues]": json.dumps({f"k{at}": {"value": 1} for at in range(11)})},
        {"metadata[keyvalues]": json.dumps({"n": {"value": 10**400, "op": "gt"}})},
        {"pageLimit": 1001},
        {"pageLimit": 0},
        {"pageOffset": -1},
        {"status": "lost"},
        {"cid": "no cid"},
        {"pinStart": "yesterday"},
    ],
)
async def test_filters_that_are_none(api: httpx.AsyncClient, wrong: Mapping[str, Any]) -> None:
    status, body = status_and_body(await api.get("/data/pinList", params=wrong))
    assert (status, body["error"]["reason"]) == (400, "INVALID_REQUEST")


async def test_the_old_list(server: RunningServer, api: httpx.AsyncClient, tenant: str) -> None:
    first, second, third = await public(server, tenant, "1", "22", "333")
    await keep(server, tenant, ContentNetwork.PRIVATE, b"private")
    await api.delete(f"/pinning/unpin/{second.cid}")

    async def cids(**query: Any) -> list[str]:
        answer = await api.get("/data/pinList", params=query)
        assert answer.status_code == 200, answer.text
        return [row["ipfs_pin_hash"] for row in answer.json()["rows"]]

    assert await cids() == [third.cid, second.cid, first.cid]
    assert await cids(status="pinned") == [third.cid, first.cid]
    assert await cids(status="unpinned") == [second.cid]
    assert await cids(pageLimit=1, pageOffset=1) == [second.cid]
    assert await cids(cid=first.cid) == [first.cid]
    assert await cids(hashContains=third.cid[20:]) == [third.cid]
    assert await cids(pinSizeMin=2) == [third.cid, second.cid]
    assert await cids(pinSizeMin=2, pinSizeMax=2) == [second.cid]
    day, after = first.created_at.strftime("%Y-%m-%d"), "9999-01-01"
    for early in (day, f"{day}T00:00:00", f"{day}T00:00:00Z", f"{day}T00:00:00.000+00:00"):
        assert await cids(pinStart=early, pinEnd=after) == [third.cid, second.cid, first.cid]
        assert await cids(pinEnd=early) == []
        assert await cids(unpinStart=early) == [second.cid]
    assert await cids(unpinEnd=day) == []
    counted = (await api.get("/data/pinList", params={"pageLimit": 1})).json()
    assert counted["count"] == 3
    row = counted["rows"][0]
    assert row.keys() == {
        *("id", "ipfs_pin_hash", "size", "user_id", "date_pinned", "date_unpinned"),
        *("metadata", "regions", "mime_type", "number_of_files"),
    }
    for flag in ("includeCount", "includesCount"):
        assert (await api.get("/data/pinList", params={flag: "false"})).json()["count"] is None


async def test_notes_by_cid(server: RunningServer, api: httpx.AsyncClient, tenant: str) -> None:
    [file] = await public(server, tenant, "noted")
    await keep(server, tenant, ContentNetwork.PRIVATE, b"noted")
    body = {"ipfsPinHash": file.cid, "name": "new", "keyvalues": {"a": 1, "b": "x"}}
    done = await api.put("/pinning/hashMetadata", json=body)
    assert (done.status_code, done.text) == (200, "OK")
    await api.put("/pinning/hashMetadata", json={"ipfsPinHash": file.cid, "keyvalues": {"a": None}})
    row = (await api.get("/data/pinList", params={"cid": file.cid})).json()["rows"][0]
    assert row["metadata"] == {"name": "new", "keyvalues": {"b": "x"}}
    assert (await api.get("/v3/files/private", params={"name": "new"})).json()["data"]["files"] == []
    assert status_and_body(await api.put("/pinning/hashMetadata", json={"ipfsPinHash": STRANGE, "name": "x"})) == (
        400,
        NOT_PINNED,
    )
    assert status_and_body(await api.delete(f"/pinning/unpin/{STRANGE}")) == (400, NOT_PINNED)


async def test_totals_are_of_public_files(server: RunningServer, api: httpx.AsyncClient, tenant: str) -> None:
    await public(server, tenant, "1", "22")
    await keep(server, tenant, ContentNetwork.PRIVATE, b"private")
    total = {"pin_count": 2, "pin_size_total": 3, "pin_size_with_replications_total": 3}
    for path in ("/data/userPinnedDataTotal", "/v3/data/userPinnedDataTotal"):
        assert status_and_body(await api.get(path)) == (200, total)


async def test_a_long_page_is_encoded_beside_the_event_loop(
    api: httpx.AsyncClient, server: RunningServer, tenant: str
) -> None:
    await public(server, tenant, *(f"{tenant} {number}" for number in range(60)))

    async def rows(limit: int, offset: int = 0) -> list[dict[str, Any]]:
        answer = await api.get("/data/pinList", params={"pageLimit": limit, "pageOffset": offset})
        assert answer.json()["count"] == 60
        return answer.json()["rows"]

    with responses._encoding:
        long = asyncio.create_task(rows(60))
        short = await rows(30) + await rows(30, 30)
        assert not long.done()
    assert await long == short
    assert len(short) == 60
