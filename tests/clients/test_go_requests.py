"""The requests of the reference service's command line (Go), in its order, read as strictly as it reads the answers.

It counts any status but 200 as failed, on creation too; decodes into typed fields; and takes ids out of addresses by
position. It always speaks https, which here would be a proxy in front.
"""

import base64
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import httpx2 as httpx
import pytest

from roost.core import clock
from roost.storage.content.unixfs.importer import UnixfsImporter
from roost.storage.content.unixfs.profile import V1
from tests.support.server import RunningServer, running

THRESHOLD = 100 * 1024 * 1024
"""Files of more bytes go up in parts."""
PART = 50 * 1024 * 1024 + 1
PIECE = bytes(range(256)) * 4096

TEXT: Mapping[str, tuple[type, ...]] = {"id": (str,), "name": (str,), "created_at": (str,)}
FILE: Mapping[str, tuple[type, ...]] = {
    **TEXT,
    "cid": (str,),
    "size": (int,),
    "number_of_files": (int,),
    "mime_type": (str,),
    "keyvalues": (dict,),
    "group_id": (str, type(None)),
}
UPLOADED: Mapping[str, tuple[type, ...]] = {
    **FILE,
    "vectorized": (bool,),
    "network": (str,),
    "is_duplicate": (bool,),
}
KEY: Mapping[str, tuple[type, ...]] = {
    "id": (str,),
    "name": (str,),
    "key": (str,),
    "user_id": (str,),
    "createdAt": (str,),
    "updatedAt": (str,),
    "uses": (int,),
    "max_uses": (int, type(None)),
    "scopes": (dict,),
    "revoked": (bool,),
}


def typed(found: Mapping[str, Any], fields: Mapping[str, tuple[type, ...]]) -> Mapping[str, Any]:
    """What would not decode there fails here."""
    for name, kinds in fields.items():
        assert type(found[name]) in kinds, (name, found[name])
    return found


@dataclass
class GoCommands:
    """What the commands send."""

    api: httpx.AsyncClient
    uploads: httpx.AsyncClient

    async def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """`content-type` is there even where nothing comes with it."""
        headers, content = {"content-type": "application/json"}, None if body is None else json.dumps(body).encode()
        answer = await self.api.request(method, path, headers=headers, content=content)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def upload(self, filename: str, content: bytes | Iterator[bytes], /, **fields: str) -> Mapping[str, Any]:
        """The file is the first part of the form, the fields come behind it."""
        boundary = "b" * 60
        disposition = f'form-data; name="file"; filename="{filename}"'
        head = f"--{boundary}\r\nContent-Disposition: {disposition}\r\nContent-Type: application/octet-stream\r\n\r\n"

        async def body() -> AsyncIterator[bytes]:
            yield head.encode()
            for piece in [content] if isinstance(content, bytes) else content:
                yield piece
            for field, value in fields.items():
                part = f'\r\n--{boundary}\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{value}'
                yield part.encode()
            yield f"\r\n--{boundary}--\r\n".encode()

        kind = {"content-type": f"multipart/form-data; boundary={boundary}"}
        answer = await self.uploads.post("/v3/files", headers=kind, content=body())
        assert answer.status_code == 200, answer.text
        return typed(answer.json()["data"], UPLOADED)

    async def upload_in_parts(self, size: int, **metadata: str) -> Mapping[str, Any]:
        pairs = [f"{name} {base64.b64encode(value.encode()).decode()}" for name, value in metadata.items()]
        speaks = {"Tus-Resumable": "1.0.0"}
        begun = await self.uploads.post(
            "/v3/files",
            headers={**speaks, "Content-Length": "0", "Upload-Length": str(size), "Upload-Metadata": ",".join(pairs)},
        )
        assert begun.status_code == 201, begun.text
        location, offset = begun.headers["location"], 0
        assert location.startswith("https://uploads.localhost")
        while offset < size:
            length = min(PART, size - offset)
            headers = {
                **speaks,
                "Content-Type": "application/offset+octet-stream",
                "Content-Length": str(length),
                "Upload-Offset": str(offset),
            }
            path = location.partition("//")[2].partition("/")[2]
            answer = await self.uploads.patch(f"/{path}", headers=headers, content=_sent(content_of(length, offset)))
            assert answer.status_code == 204, answer.text
            offset = int(answer.headers["Upload-Offset"])
        file_id = location.split("/")[-2]
        return typed((await self.send("GET", f"/v3/files/{metadata['network']}/{file_id}"))["data"], FILE)


async def _sent(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def content_of(size: int, start: int = 0) -> Iterator[bytes]:
    """Some bytes of an endless file."""
    while size > 0:
        at = start % len(PIECE)
        piece = PIECE[at : at + size]
        yield piece
        start, size = start + len(piece), size - len(piece)


def cid_of(size: int) -> str:
    importer = UnixfsImporter(V1)
    for piece in content_of(size):
        importer.update(piece)
    return str(importer.finish().cid)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    async with running(tmp_path_factory.mktemp("go") / "data", ROOST_PUBLIC_SCHEME="https") as server:
        yield server


@pytest.fixture
def pinata(server: RunningServer, request: pytest.FixtureRequest) -> GoCommands:
    key = server.key(request.node.name[:60])
    return GoCommands(server.client(key, "api.localhost"), server.client(key, "uploads.localhost"))


async def test_credentials_are_tested_as_the_client_does(server: RunningServer, pinata: GoCommands) -> None:
    greeted = await pinata.api.get("/data/testAuthentication")
    assert greeted.status_code == 200
    stranger = server.client("nonsense", "api.localhost")
    assert (await stranger.get("/data/testAuthentication")).status_code == 401
    [row] = (await pinata.send("GET", "/v3/ipfs/gateways"))["data"]["rows"]
    assert row["domain"]
    assert "." not in row["domain"]  # the command line puts a suffix behind it


@pytest.mark.parametrize("network", ["public", "private"])
async def test_files_requests_have_the_expected_fields(pinata: GoCommands, network: str) -> None:
    group = (await pinata.send("POST", f"/v3/groups/{network}", {"name": "g", "is_public": False}))["data"]
    made = await pinata.upload("a.txt", b"one", network=network, group_id=group["id"], name="a.txt")
    assert (made["name"], made["group_id"], made["network"]) == ("a.txt", group["id"], network)
    other = await pinata.upload("b.txt", b"two", network=network, name="second")
    path = f"/v3/files/{network}"
    got = typed((await pinata.send("GET", f"{path}/{made['id']}"))["data"], FILE)
    assert (got["cid"], got["size"]) == (made["cid"], 3)
    assert (await pinata.send("PUT", f"{path}/{made['id']}", {"name": "renamed"}))["data"]["name"] == "renamed"
    for query, wanted in (
        ("", [other, made]),
        ("limit=1", [other]),
        ("name=renamed", [made]),
        (f"cid={other['cid']}&mimeType=text/plain", [other]),
        (f"group={group['id']}", [made]),
        ("cidPending=true", []),
        ("keyvalues[a]=b", []),
    ):
        listed = (await pinata.send("GET", f"{path}?{query}"))["data"]
        assert [row["id"] for row in listed["files"]] == [row["id"] for row in wanted]
        assert type(listed["next_page_token"]) in (str, type(None))
    token = (await pinata.send("GET", f"{path}?limit=1"))["data"]["next_page_token"]
    listed = (await pinata.send("GET", f"{path}?limit=1&pageToken={token}"))["data"]
    assert [row["id"] for row in listed["files"]] == [made["id"]]
    await pinata.send("DELETE", f"{path}/{made['id']}")
    gone = await pinata.api.get(f"{path}/{made['id']}", headers={"content-type": "application/json"})
    assert gone.status_code == 404


@pytest.mark.parametrize("network", ["public", "private"])
async def test_groups_requests_have_the_expected_fields(pinata: GoCommands, network: str) -> None:
    path = f"/v3/groups/{network}"
    made = typed((await pinata.send("POST", path, {"name": "one", "is_public": False}))["data"], TEXT)
    one = f"{path}/{made['id']}"
    assert typed((await pinata.send("GET", one))["data"], TEXT) == made
    assert (await pinata.send("PUT", one, {"name": "two", "is_public": False}))["data"]["name"] == "two"
    listed = (await pinata.send("GET", f"{path}?limit=10&name=tw"))["data"]
    assert ([row["id"] for row in listed["groups"]], type(listed["next_page_token"])) == ([made["id"]], str)
    file = await pinata.upload("a.txt", b"one", network=network, name="a.txt")
    await pinata.send("PUT", f"{one}/ids/{file['id']}")
    assert (await pinata.send("GET", f"/v3/files/{network}/{file['id']}"))["data"]["group_id"] == made["id"]
    await pinata.send("DELETE", f"{one}/ids/{file['id']}")
    await pinata.send("DELETE", one)


async def test_vectors_requests_work_at_the_api_address(pinata: GoCommands) -> None:
    """At the address of the API, where the answers have an envelope."""
    group = (await pinata.send("POST", "/v3/groups/private", {"name": "docs", "is_public": False}))["data"]
    file = await pinata.upload(
        "tea.txt", b"Tea is made with hot water.", network="private", name="t", group_id=group["id"]
    )
    path = f"/v3/vectorize/files/{file['id']}"
    assert typed(await pinata.send("POST", path), {"success": (bool,), "status": (str,), "data": (dict,)})["success"]
    found = (await pinata.send("POST", f"/v3/vectorize/groups/{group['id']}/query", {"text": "tea"}))["data"]
    assert typed(found, {"count": (int,), "matches": (list,)})["count"] == 1
    typed(found["matches"][0], {"file_id": (str,), "cid": (str,), "score": (float,)})
    assert await pinata.send("DELETE", path) == {"success": True}


async def test_folder_without_keyvalues_is_pinned(pinata: GoCommands) -> None:
    boundary = "c" * 60
    fields = {
        "pinataOptions": '{"cidVersion":1}',
        "pinataMetadata": '{"name":"trip"}',  # without keyvalues: an empty map is left out
    }
    parts = [
        f'Content-Disposition: form-data; name="file"; filename="trip/{name}"\r\n'
        f"Content-Type: application/octet-stream\r\n\r\n{text}"
        for name, text in (("a.txt", "one"), ("days/b.txt", "two"))
    ] + [f'Content-Disposition: form-data; name="{name}"\r\n\r\n{value}' for name, value in fields.items()]
    body = "".join(f"--{boundary}\r\n{part}\r\n" for part in parts) + f"--{boundary}--\r\n"
    kind = {"content-type": f"multipart/form-data; boundary={boundary}"}
    answer = await pinata.api.post("/pinning/pinFileToIPFS", headers=kind, content=body.encode())
    assert answer.status_code == 200
    pinned = typed(
        answer.json(),
        {
            "ID": (str,),
            "Name": (str,),
            "IpfsHash": (str,),
            "PinSize": (int,),
            "Timestamp": (str,),
            "NumberOfFiles": (int,),
            "MimeType": (str,),
            "GroupId": (str, type(None)),
            "Keyvalues": (dict,),
            "isDuplicate": (bool,),
        },
    )
    assert (pinned["Name"], pinned["NumberOfFiles"], pinned["PinSize"]) == ("trip", 2, 6)
    assert (await pinata.send("GET", f"/v3/files/public/{pinned['ID']}"))["data"]["cid"] == pinned["IpfsHash"]


async def test_a_file_at_the_threshold_and_one_beyond(pinata: GoCommands) -> None:
    at = await pinata.upload("at.bin", content_of(THRESHOLD), network="private", name="at.bin")
    assert (at["size"], at["cid"]) == (THRESHOLD, cid_of(THRESHOLD))
    group = (await pinata.send("POST", "/v3/groups/private", {"name": "g", "is_public": False}))["data"]
    size = THRESHOLD + 1
    beyond = await pinata.upload_in_parts(size, filename="beyond", network="private", group_id=group["id"])
    assert (beyond["size"], beyond["cid"]) == (size, cid_of(size))
    assert (beyond["name"], beyond["group_id"]) == ("beyond", group["id"])


async def test_links_to_private_files(server: RunningServer, pinata: GoCommands) -> None:
    file = await pinata.upload("a.txt", b"secret", network="private", name="a.txt")
    [row] = (await pinata.send("GET", "/v3/ipfs/gateways"))["data"]["rows"]
    host = f"{row['domain']}.gateways.localhost"  # as `gateways set` was told
    asked = {
        "url": f"https://{host}:{server.port}/files/{file['cid']}",
        "expires": 30,
        "date": int(clock.utc_now().timestamp()),
        "method": "GET",
    }
    link = (await pinata.send("POST", "/v3/files/private/download_link", asked))["data"]
    assert link.startswith(f"{asked['url']}?")
    gateway = server.client(None, host)
    assert (await gateway.get(f"/files/{file['cid']}?{link.partition('?')[2]}")).text == "secret"
    assert (await gateway.get(f"/files/{file['cid']}")).status_code in {401, 403}


async def test_swaps_requests_have_the_expected_fields(pinata: GoCommands) -> None:
    one, two = [await pinata.upload(name, name.encode(), network="public", name=name) for name in ("a", "b")]
    [row] = (await pinata.send("GET", "/v3/ipfs/gateways"))["data"]["rows"]
    path = f"/v3/files/public/swap/{one['cid']}"
    fields: Mapping[str, tuple[type, ...]] = {"mapped_cid": (str,), "created_at": (str,)}
    made = typed((await pinata.send("PUT", path, {"swap_cid": two["cid"]}))["data"], fields)
    assert (await pinata.send("GET", f"{path}?domain={row['domain']}"))["data"] == [made]
    suffixed = await pinata.send("GET", f"{path}?domain={row['domain']}.mypinata.cloud")
    assert suffixed["data"] == [made]
    await pinata.send("DELETE", path)


async def test_keys_requests_have_the_expected_fields(pinata: GoCommands) -> None:
    nothing: Mapping[str, Any] = {"data": {}, "pinning": {}}
    asked = {"keyName": "admin", "permissions": {"admin": True, "endpoints": nothing}}
    admin = await pinata.send("POST", "/v3/pinata/keys", asked)
    typed(admin, dict.fromkeys(("JWT", "pinata_api_key", "pinata_api_secret"), (str,)))
    named = {"data": {"pinList": True}, "pinning": {"pinFileToIPFS": True, "pinJobs": True, "userPinPolicy": True}}
    asked = {"keyName": "some", "permissions": {"endpoints": named}, "maxUses": 3}
    some = await pinata.send("POST", "/v3/pinata/keys", asked)
    listed = await pinata.send("GET", "/v3/pinata/keys?name=some&limitedUse=true")
    assert (listed["count"], [typed(row, KEY)["key"] for row in listed["keys"]]) == (1, [some["pinata_api_key"]])
    await pinata.send("PUT", f"/v3/pinata/keys/{some['pinata_api_key']}")
    [revoked] = (await pinata.send("GET", "/v3/pinata/keys?revoked=true&offset=0"))["keys"]
    assert revoked["name"] == "some"
    assert (await pinata.send("GET", "/v3/pinata/keys?exhausted=true"))["keys"] == []
