"""Webhooks over HTTP: shapes, scopes, tenants, statuses, and messages about changed files."""

import re
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx2 as httpx
import pytest
from standardwebhooks.webhooks import Webhook as Reader

from tests.support.receiver import Receiver, receiving
from tests.support.server import RunningServer, running

UNKNOWN = (404, {"error": {"code": 404, "message": "Webhook not found"}})
NOBODY = "00000000-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    options: dict[str, Any] = {"ROOST_EGRESS_ALLOW": "127.0.0.1/32", "ROOST_EGRESS_HOSTS": "inside.example=127.0.0.1"}
    async with running(tmp_path_factory.mktemp("d") / "data", **options) as server:
        yield server


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as made:
        yield made


def status_and_body(answer: httpx.Response) -> tuple[int, Any]:
    return answer.status_code, answer.json()


async def create(api: httpx.AsyncClient, url: str = "https://receiver.example/", **more: Any) -> dict[str, Any]:
    answer = await api.post("/v3/webhooks", json={"url": url, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


async def upload(server: RunningServer, api: httpx.AsyncClient, network: str = "private") -> dict[str, Any]:
    form = {"network": network, "name": "a.txt"}
    answer = await api.post("/v3/files", data=form, files={"file": ("a.txt", b"hello")})
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


async def test_a_webhook_comes_and_goes(api: httpx.AsyncClient) -> None:
    made = await create(api, events=["ipfs.public.file_added"], description="mine")
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", made.pop("secret"))
    assert made.keys() == {
        *("id", "url", "description", "events", "enabled", "disabled_reason", "failing_since"),
        *("created_at", "updated_at"),
    }
    path = f"/v3/webhooks/{made['id']}"
    assert status_and_body(await api.get(path)) == (200, {"data": made})
    assert status_and_body(await api.get("/v3/webhooks")) == (200, {"data": {"webhooks": [made]}})
    changed = (await api.put(path, json={"enabled": False, "events": []})).json()["data"]
    assert changed == {**made, "enabled": False, "events": [], "updated_at": changed["updated_at"]}
    rotated = (await api.post(f"{path}/rotate_secret")).json()["data"]
    assert rotated["secret"].startswith("whsec_")
    assert status_and_body(await api.get(f"{path}/deliveries")) == (
        200,
        {"data": {"deliveries": [], "next_page_token": None}},
    )
    assert status_and_body(await api.delete(path)) == (200, {"data": None})
    assert status_and_body(await api.get(path)) == UNKNOWN


async def test_a_files_life_is_told(server: RunningServer, api: httpx.AsyncClient, receiver: Receiver) -> None:
    made = await create(api, receiver.url)
    for network in ("private", "public"):
        receiver.messages.clear()
        file = await upload(server, api, network)
        await receiver.wait(1)
        await api.put(f"/v3/files/{network}/{file['id']}", json={"name": "b.txt", "keyvalues": {"k": "v"}})
        await receiver.wait(2)
        await api.delete(f"/v3/files/{network}/{file['id']}")
        added, updated, deleted = await receiver.wait(3)
        assert [one.event for one in (added, updated, deleted)] == [
            f"ipfs.{network}.file_{what}" for what in ("added", "updated", "deleted")
        ]
        for message in (added, updated, deleted):
            data = Reader(made["secret"]).verify(message.body, dict(message.headers))["data"]
            assert (data["object"]["id"], data["object"]["cid"]) == (file["id"], file["cid"])
        assert updated.json["data"]["previous_attributes"] == {"name": "a.txt", "keyvalues": {}}
        assert updated.json["data"]["object"]["keyvalues"] == {"k": "v"}
        assert added.json["workspace_id"] == file["user_id"]


async def test_other_ways_of_changing_files_send_events(
    server: RunningServer, api: httpx.AsyncClient, receiver: Receiver
) -> None:
    await create(api, receiver.url)
    kept = (await api.post("/pinning/pinJSONToIPFS", json={"pinataContent": {"a": 1}})).json()["IpfsHash"]
    changed = {"ipfsPinHash": kept, "name": "n", "keyvalues": {"k": "v"}}
    assert (await api.put("/pinning/hashMetadata", json=changed)).status_code == 200
    assert (await api.delete(f"/pinning/unpin/{kept}")).status_code == 200
    file = await upload(server, api)
    group = (await api.post("/v3/groups/private", json={"name": "g"})).json()["data"]["id"]
    path = f"/v3/groups/private/{group}/ids/{file['id']}"
    assert [(await call(path)).status_code for call in (api.put, api.delete)] == [200, 200]
    signed = {"date": int(time.time()), "expires": 60, "network": "private"}
    address = (await api.post("/v3/files/sign", json=signed)).json()["data"]
    where = httpx.URL(address)
    guest = server.client(None, "uploads.localhost")
    sent = await guest.post(f"{where.path}?{where.query.decode()}", files={"file": ("b.txt", b"signed")})
    assert sent.status_code == 200, sent.text
    messages = await receiver.wait(7)
    assert sorted(one.event for one in messages) == [
        *("ipfs.private.file_added", "ipfs.private.file_added", "ipfs.private.file_updated"),
        *(
            "ipfs.private.file_updated",
            "ipfs.public.file_added",
            "ipfs.public.file_deleted",
            "ipfs.public.file_updated",
        ),
    ]
    moved = [one.json["data"] for one in messages if one.event == "ipfs.private.file_updated"]
    status_and_body = {(one["object"]["group_id"], one["previous_attributes"]["group_id"]) for one in moved}
    assert status_and_body == {(group, None), (None, group)}


async def test_deliveries_are_listed_and_sent_again(
    server: RunningServer, api: httpx.AsyncClient, receiver: Receiver
) -> None:
    path = f"/v3/webhooks/{(await create(api, receiver.url))['id']}"
    await upload(server, api)
    (message,) = await receiver.wait()
    (row,) = await states(api, path, "delivered")
    assert row.keys() == {
        *("id", "event_id", "event_type", "state", "attempts", "status", "error", "created_at", "attempted_at"),
        *("next_attempt_at", "finished_at"),
    }
    assert (row["event_id"], row["status"], row["attempts"]) == (message.headers["webhook-id"], 200, 1)
    again = await api.post(f"{path}/deliveries/{row['id']}/redeliver")
    assert (again.status_code, again.json()["data"]["state"]) == (200, "pending")
    _, second = await receiver.wait(2)
    assert second.body == message.body
    assert (await api.get(f"{path}/deliveries", params={"state": "failed"})).json()["data"]["deliveries"] == []
    missing = await api.post(f"{path}/deliveries/{NOBODY}/redeliver")
    assert status_and_body(missing) == (404, {"error": {"code": 404, "message": "Delivery not found"}})


async def states(api: httpx.AsyncClient, path: str, state: str) -> list[dict[str, Any]]:
    """Wait for a delivery in that state; return all deliveries."""
    while True:
        rows = (await api.get(f"{path}/deliveries", params={"state": state})).json()["data"]["deliveries"]
        if rows:
            return rows


async def test_a_test_and_a_name_of_the_operators(api: httpx.AsyncClient, receiver: Receiver) -> None:
    made = await create(api, f"http://inside.example:{receiver.port}/x?a=b")
    done = (await api.post(f"/v3/webhooks/{made['id']}/test")).json()["data"]
    assert (done["event_type"], done["state"], done["status"]) == ("webhook.test", "delivered", 200)
    (message,) = receiver.messages
    assert (message.path, message.headers["host"]) == ("/x?a=b", f"inside.example:{receiver.port}")
    assert Reader(made["secret"]).verify(message.body, dict(message.headers))["event_type"] == "webhook.test"
    receiver.status = 410
    assert (await api.post(f"/v3/webhooks/{made['id']}/test")).json()["data"]["status"] == 410
    gone = (await api.get(f"/v3/webhooks/{made['id']}")).json()["data"]
    assert (gone["enabled"], gone["disabled_reason"]) == (False, "gone")


@pytest.mark.parametrize(
    "url",
    [
        *("", "x", "receiver.example", "ftp://receiver.example/", "http://receiver.example/", "https://", "https:///x"),
        *("https://localhost:99999/", "https://user:pass@receiver.example/", "https://receiver.example/#x"),
        *("https://10.0.0.1/", "https://192.168.0.1/", "https://169.254.169.254/latest", "https://[::1]/"),
        *("https://0x0a000001/", "https://167772161/", "https://[::ffff:10.0.0.1]/", "https://[fe80::1]/"),
        *(
            "https://receiver.example:25/",
            "https://receiver.example/a b",
            "https://receiver.example/\n",
            "https://é.example/",
        ),
        "https://receiver.example/" + "x" * 2048,
    ],
)
async def test_where_no_webhook_goes(api: httpx.AsyncClient, url: str) -> None:
    answer = await api.post("/v3/webhooks", json={"url": url})
    assert (answer.status_code, answer.json()["error"].keys()) == (400, {"code", "message"})
    assert (await api.get("/v3/webhooks")).json()["data"]["webhooks"] == []


@pytest.mark.parametrize(
    "body",
    [
        *({}, {"url": 1}, {"url": None}, [], "x"),
        *(
            {"events": ["file_added"]},
            {"events": "x"},
            {"events": [1]},
            {"description": "x" * 501},
            {"enabled": "perhaps"},
        ),
        {"description": "a\0b"},
    ],
)
async def test_malformed_webhooks_are_refused(api: httpx.AsyncClient, body: Any) -> None:
    if isinstance(body, dict) and body and "url" not in body:
        made = await create(api)
        assert (await api.put(f"/v3/webhooks/{made['id']}", json=body)).status_code == 400
        body = {"url": "https://receiver.example/", **body}
    answer = await api.post("/v3/webhooks", json=body)
    assert (answer.status_code, answer.json()["error"].keys()) == (400, {"code", "message"})


async def test_a_change_of_nothing(api: httpx.AsyncClient) -> None:
    made = await create(api)
    for body in ({}, {"else": 1}, {"url": "https://127.0.0.2/"}):
        assert (await api.put(f"/v3/webhooks/{made['id']}", json=body)).status_code == 400


async def test_another_tenant_finds_nothing(server: RunningServer, api: httpx.AsyncClient) -> None:
    made, foreign = await create(api), server.client(server.key("foreign"), "api.localhost")
    path = f"/v3/webhooks/{made['id']}"
    for answer in (
        await foreign.get(path),
        await foreign.put(path, json={"enabled": False}),
        await foreign.delete(path),
        await foreign.post(f"{path}/rotate_secret"),
        await foreign.get(f"{path}/deliveries"),
        await foreign.post(f"{path}/deliveries/{NOBODY}/redeliver"),
        await foreign.post(f"{path}/test"),
        await api.get(f"/v3/webhooks/{NOBODY}"),
    ):
        assert status_and_body(answer) == UNKNOWN
    assert (await foreign.get("/v3/webhooks")).json()["data"]["webhooks"] == []
    assert (await api.get("/v3/webhooks/x")).status_code == 404


async def test_there_are_twenty(api: httpx.AsyncClient) -> None:
    for _ in range(20):
        await create(api)
    answer = await api.post("/v3/webhooks", json={"url": "https://receiver.example/"})
    assert status_and_body(answer) == (403, {"error": {"code": 403, "message": "Webhook limit reached"}})


@pytest.mark.parametrize(
    ("scope", "read", "write"),
    [("org:read", 200, 403), ("org:write", 200, 200), ("org:files:write", 403, 403), ("org:agents:write", 403, 403)],
)
async def test_webhooks_need_their_scopes(server: RunningServer, scope: str, read: int, write: int) -> None:
    api = server.client(server.key("scopes", scopes=frozenset({scope})), "api.localhost")
    assert (await api.get("/v3/webhooks")).status_code == read
    assert (await api.post("/v3/webhooks", json={"url": "https://receiver.example/"})).status_code == write
