"""Uploads, files and the older pinning API over HTTP: responses, scopes, refusals, remains."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from tests.support.server import RunningServer, running

FORM = "multipart/form-data; boundary=edge"
HEAD = b'--edge\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
V0, V1 = "Qmf412jQZiuVUtdgnB36FXFX7xg5V6KEbSJ4dpQuhkLyfD", "bafkreifzjut3te2nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e"
UNKNOWN = "00000000-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    folder = tmp_path_factory.mktemp("d") / "data"
    async with running(folder, ROOST_UPLOAD_FREE="64M") as server:
        yield server


async def keep(api: httpx.AsyncClient, content: bytes = b"hello world", name: str = "a.txt", **said: str) -> Any:
    answer = await api.post("/v3/files", files={"file": (name, content)}, data=said)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


async def test_a_file_comes_goes_and_changes(api: httpx.AsyncClient) -> None:
    file = await keep(api, name="hello.txt", keyvalues='{"a":"1"}')
    assert (file["cid"], file["size"], file["mime_type"], file["network"]) == (V1, 11, "text/plain", "private")
    assert (await keep(api))["is_duplicate"] is True
    path = f"/v3/files/private/{file['id']}"
    assert (await api.get(path)).json()["data"]["name"] == "hello.txt"
    changed = await api.put(path, json={"name": "other", "keyvalues": {"a": None, "b": "2"}})
    assert (changed.json()["data"]["name"], changed.json()["data"]["keyvalues"]) == ("other", {"b": "2"})
    for body in ({}, {"expires_at": 1}, {"keyvalues": {"a": "x" * 2000}}, {"keyvalues": []}, {"name": "x" * 300}):
        assert (await api.put(path, json=body)).status_code == 400
    assert (await api.delete(path)).json() == {"data": None}
    assert (await api.get(path)).status_code == (await api.delete(path)).status_code == 404


async def test_lists_and_their_filters(api: httpx.AsyncClient) -> None:
    one = await keep(api, b"1", "one.txt", keyvalues='{"k":"a"}')
    two = await keep(api, b"2", "two.json", cid_version="v0", keyvalues='{"k":"b"}')

    async def found(**query: Any) -> list[str]:
        answer = await api.get("/v3/files/private", params=query)
        assert answer.status_code == 200, answer.text
        return [file["id"] for file in answer.json()["data"]["files"]]

    assert await found() == await found(group="null") == await found(order="DESC") == [two["id"], one["id"]]
    assert await found(order="asc") == [one["id"], two["id"]]
    assert await found(name="one") == await found(**{"keyvalues[k]": "a"}) == await found(cid=one["cid"]) == [one["id"]]
    assert await found(metadata='{"k":"b"}') == await found(cid=two["cid"]) == [two["id"]]
    assert await found(mimeType="image/png") == await found(cidPending="true") == []
    page = (await api.get("/v3/files/private?limit=1")).json()["data"]
    assert await found(limit=1, pageToken=page["next_page_token"]) == [one["id"]]
    for query in ("cid=nonsense", "pageToken=!", "order=up", "limit=x", "cid=" + "b" * 10_000):
        assert (await api.get(f"/v3/files/private?{query}")).status_code == 400
    for network in ("Public", "prod"):
        assert (await api.get(f"/v3/files/{network}")).status_code == 400


async def test_nobody_else_sees_it(server: RunningServer, api: httpx.AsyncClient) -> None:
    file = await keep(api)
    other = server.client(server.key("another"), "api.localhost")
    for method in ("GET", "DELETE"):
        for client, network in ((other, "private"), (api, "public")):
            theirs = await client.request(method, f"/v3/files/{network}/{file['id']}")
            nobodys = await client.request(method, f"/v3/files/{network}/{UNKNOWN}")
            assert (theirs.status_code, theirs.json()) == (nobodys.status_code, nobodys.json()) == (404, theirs.json())
    assert (await other.get("/v3/files/private")).json()["data"]["files"] == []
    assert (await api.get("/v3/files/private")).json()["data"]["files"][0]["id"] == file["id"]


async def test_uploads_need_their_scopes(server: RunningServer) -> None:
    reader = server.client(server.key(scopes=frozenset({"org:files:read"})), "api.localhost")
    groups = server.client(server.key(scopes=frozenset({"org:groups:read"})), "api.localhost")
    assert (await reader.post("/v3/files", files={"file": b"x"})).status_code == 403
    assert (await groups.get("/v3/files/private")).status_code == 403
    assert (await server.client(None, "api.localhost").get("/v3/files/private")).status_code == 401
    for path in ("/data/testAuthentication", "/v3/data/testAuthentication"):
        assert (await groups.get(path)).json()["message"].startswith("Congratulations")
    refused = await groups.get("/data/pinList")
    assert (refused.status_code, refused.json()["error"]["reason"]) == (403, "NO_SCOPES_FOUND")


async def test_malformed_uploads_are_refused(server: RunningServer, api: httpx.AsyncClient) -> None:
    wrong = ({"network": "Public"}, {"keyvalues": "{"}, {"expires_at": "1"}, {"cid_version": "v9"}, {"name": "x" * 300})
    for said in wrong:
        assert (await api.post("/v3/files", files={"file": b"x"}, data=said)).status_code == 400
    assert (await api.post("/v3/files", files={"file": b"x"}, data={"group_id": UNKNOWN})).status_code == 404
    assert (await api.post("/v3/files", json={})).status_code == 400
    free = server.client(server.key("free", plan=None), "api.localhost")
    assert (await free.get("/v3/files/limits")).json()["data"]["max_size"] == 64 * 1024**2
    body = HEAD + bytes(64 * 1024**2 + 1) + b"\r\n--edge--\r\n"
    refused = await free.post("/v3/files", content=body, headers={"Content-Type": FORM})
    assert (refused.status_code, refused.json()["error"]["code"]) == (413, 413)


async def test_a_car_is_what_is_in_it(api: httpx.AsyncClient) -> None:
    body = bytes.fromhex("01551220") + bytes.fromhex("b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9")
    header = bytes.fromhex("a265726f6f747381d82a5825 00".replace(" ", "")) + body + bytes.fromhex("6776657273696f6e01")
    section = body + b"hello world"
    car = bytes([len(header)]) + header + bytes([len(section)]) + section
    file = await keep(api, car, "a.car", car="true")
    assert (file["cid"], file["size"], file["number_of_files"]) == (V1, 11, 1)
    assert (await api.post("/v3/files", files={"file": b"none"}, data={"car": "true"})).status_code == 400
    pragma = bytes.fromhex("0aa16776657273696f6e02") + bytes(16)
    numbers = b"".join(number.to_bytes(8, "little") for number in (60, len(car), 0))
    file = await keep(api, pragma + numbers + bytes(9) + car, "version-2.car", car="true")
    assert (file["cid"], file["size"], file["is_duplicate"]) == (V1, 11, True)


async def test_a_client_that_leaves_leaves_nothing(server: RunningServer, api: httpx.AsyncClient) -> None:
    def kept() -> set[Path]:
        return {path for path in (server.roost.core.settings.data / "blobs").rglob("*") if path.is_file()}

    async def until(condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(10):
            while not condition():
                await asyncio.sleep(0.01)

    before = kept()
    with socket.create_connection(("127.0.0.1", server.port)) as line:
        head = f"POST /v3/files HTTP/1.1\r\nHost: api.localhost\r\nAuthorization: {api.headers['Authorization']}\r\n"
        line.sendall(
            f"{head}Content-Type: {FORM}\r\nContent-Length: 9000000\r\n\r\n".encode() + HEAD + bytes(3_000_000)
        )
        await until(lambda: kept() > before)
    await until(lambda: kept() == before)
    assert (await api.get("/v3/files/private")).json()["data"]["files"] == []


async def test_the_older_api(api: httpx.AsyncClient) -> None:
    said = {"pinataMetadata": '{"name":"old","keyvalues":{"k":"v"}}', "pinataOptions": '{"cidVersion":0}'}
    one = (await api.post("/pinning/pinFileToIPFS", files={"file": ("a.txt", b"hello world")}, data=said)).json()
    assert (one["IpfsHash"], one["PinSize"], one["Name"], one["isDuplicate"]) == (V0, 11, "old", False)
    folder = [("file", ("top/a", b"a")), ("file", ("top/b", b"b"))]
    two = (await api.post("/pinning/pinFileToIPFS", files=folder)).json()
    assert (two["MimeType"], two["NumberOfFiles"]) == ("directory", 2)
    three = (await api.post("/pinning/pinJSONToIPFS", json={"pinataContent": {"a": 1}})).json()
    assert (three["MimeType"], three["PinSize"]) == ("application/json", 7)
    total = (await api.get("/data/userPinnedDataTotal")).json()
    assert (total["pin_count"], total["pin_size_total"]) == (3, 20)

    async def found(**query: Any) -> list[str]:
        answer = await api.get("/data/pinList", params=query)
        assert answer.status_code == 200, answer.text
        return [row["ipfs_pin_hash"] for row in answer.json()["rows"]]

    wanted = json.dumps({"k": {"value": "v", "op": "eq"}})
    assert await found() == [three["IpfsHash"], two["IpfsHash"], V0]
    assert (
        await found(pageLimit=1, pageOffset=1) == await found(hashContains=two["IpfsHash"][5:30]) == [two["IpfsHash"]]
    )
    assert await found(**{"metadata[name]": "old"}) == await found(**{"metadata[keyvalues]": wanted}) == [V0]
    assert await found(pinSizeMin=8, pinStart="2020-01-01T00:00:00Z") == [V0]
    assert await found(pinEnd="2020-01-01T00:00:00Z") == await found(status="unpinned") == []
    changed = {"ipfsPinHash": V0, "name": "new", "keyvalues": {"k": None, "n": 1}}
    assert (await api.put("/pinning/hashMetadata", json=changed)).text == "OK"
    row = (await api.get("/data/pinList", params={"metadata[name]": "new"})).json()["rows"][0]
    assert row["metadata"] == {"name": "new", "keyvalues": {"n": 1}}
    assert (await api.delete(f"/pinning/unpin/{V0}")).text == "OK"
    assert await found(status="unpinned") == [V0]
    again = await api.delete(f"/pinning/unpin/{V0}")
    assert (again.status_code, again.json()["error"]["reason"]) == (400, "CURRENT_USER_HAS_NOT_PINNED_CID")


async def test_malformed_legacy_uploads_are_refused(api: httpx.AsyncClient) -> None:
    for body in (
        b"",
        b"[]",
        b"{",
        b'{"pinataContent":NaN}',
        b'{"pinataContent":"\\ud800"}',
        b'{"pinataOptions":[1]}',
        b'{"pinataMetadata":[]}',
    ):
        refused = await api.post("/pinning/pinJSONToIPFS", content=body)
        assert (refused.status_code, set(refused.json()["error"])) == (400, {"reason", "details"}), body
    for query in ("pageLimit=0", "pageLimit=2000", "status=x", "metadata[keyvalues]=[", "pinStart=x", "cid=x"):
        assert (await api.get(f"/data/pinList?{query}")).status_code == 400
    assert (await api.post("/pinning/pinJSONToIPFS", content=b" " * (10 * 1024**2 + 1))).status_code == 413
    assert (await api.delete("/pinning/unpin/nonsense")).status_code == 400
