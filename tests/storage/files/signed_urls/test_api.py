"""Signed URLs over HTTP: created with a key, used without one."""

import base64
import json
from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2 as httpx
import pytest

from roost.core import clock
from tests.support.server import RunningServer, running

CID = "bafkreifzjut3te7nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e"
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    async with running(tmp_path_factory.mktemp("links")) as server:
        yield server


@pytest.fixture
def tenant(request: pytest.FixtureRequest) -> str:
    """Return a tenant of this test only, because a repeated upload is a duplicate."""
    return request.node.name[:100]


@pytest.fixture
def uploads(server: RunningServer, tenant: str) -> httpx.AsyncClient:
    return server.client(server.key(tenant), "uploads.localhost")


@pytest.fixture
def anonymous(server: RunningServer) -> httpx.AsyncClient:
    """Return a client with the headers of the storage clients without a key."""
    return server.client("undefined", "uploads.localhost")


async def signed(client: httpx.AsyncClient, **body: Any) -> str:
    """Return the signed URL without the host, which the client has."""
    answer = await client.post("/v3/files/sign", json={"date": int(clock.utc_now().timestamp()), "expires": 60, **body})
    assert answer.status_code == 200, answer.text
    address = urlsplit(answer.json()["data"])
    assert address.hostname == "uploads.localhost"
    return f"{address.path}?{address.query}"


async def send(
    client: httpx.AsyncClient, where: str, content: bytes = PNG, name: str = "a.png", **fields: str
) -> httpx.Response:
    return await client.post(where, files={"file": (name, content, "text/plain")}, data=fields)


async def listed(server: RunningServer, tenant: str, network: str) -> list[Mapping[str, Any]]:
    answer = await server.client(server.key(tenant), "api.localhost").get(f"/v3/files/{network}")
    return answer.json()["data"]["files"]


async def test_one_without_a_key_uploads_what_was_signed(
    server: RunningServer, tenant: str, uploads: httpx.AsyncClient, anonymous: httpx.AsyncClient
) -> None:
    where = await signed(uploads, network="public", filename="b.png", keyvalues={"a": "b"}, cid_version="v0")
    said = dict(parse_qsl(urlsplit(where).query))
    assert said["X-Algorithm"] == "PINATA2"
    assert json.loads(said["X-Method"]) == ["HEAD", "PATCH", "POST"]
    answer = await send(anonymous, where, network="private", name="mine.png", keyvalues='{"c":"d"}', group_id="x")
    assert answer.status_code == 200, answer.text
    file = answer.json()["data"]
    assert urlsplit(where).path == f"/v3/files/{file['id']}"
    assert (file["network"], file["name"], file["keyvalues"], file["cid"][:2]) == ("public", "b.png", {"a": "b"}, "Qm")
    assert [one["id"] for one in await listed(server, tenant, "public")] == [file["id"]]
    assert await listed(server, tenant, "private") == []


async def test_unsigned_fields_are_set_by_the_uploader(
    uploads: httpx.AsyncClient, anonymous: httpx.AsyncClient
) -> None:
    file = (await send(anonymous, await signed(uploads), name="mine.png", keyvalues='{"c":"d"}')).json()["data"]
    assert (file["network"], file["name"], file["keyvalues"]) == ("private", "mine.png", {"c": "d"})


async def test_it_works_in_parts(server: RunningServer, tenant: str, uploads: httpx.AsyncClient) -> None:
    where = await signed(uploads, network="public", filename="b.png", allow_mime_types=["image/*"])
    nobody = server.client(None, "uploads.localhost")
    begun = await nobody.post(where, headers={"Upload-Length": str(len(PNG))})
    assert begun.status_code == 201, begun.text
    location = urlsplit(begun.headers["Location"]).path
    assert location.startswith(urlsplit(where).path + "/")
    headers = {"Content-Type": "application/offset+octet-stream", "Upload-Offset": "0"}
    last = await nobody.patch(location, headers=headers, content=PNG)
    assert last.status_code == 204, last.text
    (file,) = await listed(server, tenant, "public")
    assert (file["cid"], file["name"]) == (last.headers["upload-cid"], "b.png")


async def test_an_address_that_was_changed_is_refused(uploads: httpx.AsyncClient, server: RunningServer) -> None:
    where = await signed(uploads, max_file_size=10)
    path, _, query = where.partition("?")
    pairs = parse_qsl(query)
    for at, (name, value) in enumerate(pairs):
        for changed in (value + "0", value[:-1]):
            other = urlencode([*pairs[:at], (name, changed), *pairs[at + 1 :]])
            assert (await send(uploads, f"{path}?{other}")).status_code == 403, name
    assert (await send(uploads, f"{path[:-1]}{'0' if path[-1] != '0' else '1'}?{query}")).status_code == 403
    assert (await send(uploads, path)).status_code == 403
    assert (await send(server.client(None, "agents.localhost"), where)).status_code == 404


async def test_it_counts_for_its_time(uploads: httpx.AsyncClient, anonymous: httpx.AsyncClient) -> None:
    where = await signed(uploads, date=int(clock.utc_now().timestamp()) - 100, expires=50)
    assert (await send(anonymous, where)).status_code == 403


async def test_size_and_types_are_bounded(uploads: httpx.AsyncClient, anonymous: httpx.AsyncClient) -> None:
    where = await signed(uploads, max_file_size=len(PNG) - 1)
    assert (await send(anonymous, where)).status_code == 413
    assert (await anonymous.post(where, headers={"Upload-Length": str(len(PNG))})).status_code == 413
    images = await signed(uploads, allow_mime_types=["image/*"])
    refused = await send(anonymous, images, b"just text", "a.png")
    assert refused.status_code == 400
    assert "does not grant permissions to upload detected MIME type: " in refused.json()["error"]["message"]
    assert (await send(anonymous, images, PNG, "a.txt")).status_code == 200


async def test_a_folder_has_to_be_allowed(uploads: httpx.AsyncClient, anonymous: httpx.AsyncClient) -> None:
    assert (await send(anonymous, await signed(uploads, allow_mime_types=["*/*"]), PNG, "f/a.png")).status_code == 400
    allowed = await signed(uploads, allow_mime_types=["image/png", "directory"])
    answer = await send(anonymous, allowed, PNG, "f/a.png")
    assert answer.json()["data"]["mime_type"] == "directory"


async def test_it_outlives_the_key_that_made_it(
    server: RunningServer, tenant: str, anonymous: httpx.AsyncClient
) -> None:
    owner = server.client(server.key(tenant), "api.localhost")
    made = (await owner.post("/v3/pinata/keys", json={"keyName": "short", "permissions": {"admin": True}})).json()
    where = await signed(server.client(made["JWT"], "uploads.localhost"))
    assert (await owner.put(f"/v3/pinata/keys/{made['pinata_api_key']}")).status_code == 200
    assert (await server.client(made["JWT"], "uploads.localhost").get("/v3/files/public")).status_code == 401
    assert (await send(anonymous, where)).status_code == 200


async def test_it_takes_one_file(uploads: httpx.AsyncClient, anonymous: httpx.AsyncClient) -> None:
    where = await signed(uploads)
    assert (await send(anonymous, where)).status_code == 200
    again = await send(anonymous, where, PNG + b"x")
    assert (again.status_code, again.json()["error"]["message"]) == (409, "The file was uploaded already")
    assert (await send(anonymous, where)).status_code == 200


async def test_the_bearer_is_not_told_that_content_was_there(
    server: RunningServer, tenant: str, uploads: httpx.AsyncClient, anonymous: httpx.AsyncClient
) -> None:
    """The responses are the same for known and for new content."""
    other = server.client(server.key(f"{tenant} other"), "uploads.localhost")
    contents = (PNG, PNG, PNG + b"x", PNG + b"y", PNG)
    kept = [(await send(uploads, "/v3/files", content, "own.bin")).json()["data"] for content in contents]
    told: list[list[Any]] = []
    for client in (uploads, other):
        where, began = await signed(client), clock.utc_now()
        answers = [await send(anonymous, where, content) for content in contents]
        files = [answer.json().get("data", {}) for answer in answers]
        assert [answer.status_code for answer in answers] == [200, 200, 409, 409, 200]
        assert files[0]["id"] == urlsplit(where).path.rpartition("/")[2]
        assert datetime.fromisoformat(files[0]["created_at"]) >= began
        told.append([{**file, "id": "", "user_id": "", "created_at": ""} for file in files])
    assert told[0] == told[1]
    assert {one["id"] for one in await listed(server, tenant, "private")} == {file["id"] for file in kept}


async def test_the_owner_finds_what_was_there_under_the_id_that_the_bearer_got(
    server: RunningServer, tenant: str, uploads: httpx.AsyncClient, anonymous: httpx.AsyncClient
) -> None:
    api = server.client(server.key(tenant), "api.localhost")
    kept = (await send(uploads, "/v3/files", name="own.png")).json()["data"]
    promised = (await send(anonymous, await signed(uploads))).json()["data"]["id"]
    found = (await api.get(f"/v3/files/private/{promised}")).json()["data"]
    assert (found["id"], found["name"], found["created_at"]) == (kept["id"], "own.png", kept["created_at"])
    changed = await api.put(f"/v3/files/private/{promised}", json={"name": "new.png"})
    assert (changed.json()["data"]["id"], changed.json()["data"]["name"]) == (kept["id"], "new.png")
    assert (await api.get(f"/v3/files/private/{kept['id']}")).json()["data"]["name"] == "new.png"
    assert (await api.get(f"/v3/files/public/{promised}")).status_code == 404
    stranger = server.client(server.key(f"{tenant} other"), "api.localhost")
    assert (await stranger.get(f"/v3/files/private/{promised}")).status_code == 404
    assert (await api.delete(f"/v3/files/private/{promised}")).status_code == 200
    assert await listed(server, tenant, "private") == []
    assert (await api.get(f"/v3/files/private/{promised}")).status_code == 404


@pytest.mark.parametrize("path", ["/v3/files/sign", "/v3/files/private/download_link"])
async def test_a_private_file_gets_a_link(uploads: httpx.AsyncClient, path: str) -> None:
    url = f"https://mine.gateways.localhost/files/{CID}"
    body = {"url": f"{url}?img-width=10", "date": int(clock.utc_now().timestamp()), "expires": 30, "method": "GET"}
    answer = await uploads.post(path, json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["data"].startswith(f"{url}?img-width=10&X-Algorithm=PINATA1&X-Date=")


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"expires": 0},
        {"expires": 10**10},
        {"expires": 60, "date": -1},
        {"expires": 60, "network": "elsewhere"},
        {"expires": 60, "cid_version": "v7"},
        {"expires": 60, "max_file_size": 0},
        {"expires": 60, "allow_mime_types": ["\n"]},
        {"expires": 60, "keyvalues": {str(number): "x" for number in range(11)}},
        {"expires": 60, "keyvalues": {str(number): "x" * 1024 for number in range(10)}},
        {"expires": 60, "url": 1},
        {"expires": 60, "url": "https://mine.gateways.localhost/ipfs/" + CID},
        {"expires": 60, "url": f"https://mine.gateways.localhost/files/{CID}", "method": "PUT"},
    ],
)
async def test_malformed_grants_are_refused(uploads: httpx.AsyncClient, body: Mapping[str, Any]) -> None:
    answer = await uploads.post("/v3/files/sign", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, 400)


async def test_only_who_may_write_files_signs(server: RunningServer) -> None:
    for token, status in ((None, 401), ("undefined", 401), (server.key(scopes=frozenset({"org:files:read"})), 403)):
        for path in ("/v3/files/sign", "/v3/files/private/download_link"):
            answer = await server.client(token, "uploads.localhost").post(path, json={"expires": 60, "url": "x"})
            assert answer.status_code == status


async def test_metadata_of_the_tenant_are_not_told(uploads: httpx.AsyncClient, anonymous: httpx.AsyncClient) -> None:
    fields = {"name": "for me alone", "keyvalues": '{"to":"nobody"}'}
    mine = await uploads.post("/v3/files", files={"file": ("a.png", PNG, "image/png")}, data=fields)
    assert mine.json()["data"]["keyvalues"] == {"to": "nobody"}
    told = (await send(anonymous, await signed(uploads))).json()["data"]
    assert (told["is_duplicate"], told["name"], told["keyvalues"]) == (False, "a.png", {})
