"""The storage limit of a plan over HTTP: every kind of upload is refused in the form of its client."""

import asyncio
import base64
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import httpx2 as httpx
import pytest

from roost.core import clock
from roost.identity.caller import Plan
from roost.storage.content.unixfs.profile import V1
from tests.storage.cars import blocks_of, encode_car
from tests.support.server import RunningServer, running

MOST = 64 * 1024**2
LEFT = 1000
FULL = "The storage of your plan is full"
PART = "application/offset+octet-stream"


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    async with running(tmp_path_factory.mktemp("d") / "data", ROOST_STORAGE_FREE="64M") as server:
        yield server


@pytest.fixture(scope="module")
async def api(server: RunningServer) -> httpx.AsyncClient:
    """Return a client of a tenant on the free plan with 1,000 bytes left."""
    client = server.client(server.key("full", Plan.FREE), "uploads.localhost")
    answer = await send(client, bytes(MOST - LEFT))
    assert answer.status_code == 200, answer.text
    return client


async def send(client: httpx.AsyncClient, content: bytes, path: str = "/v3/files", **said: str) -> httpx.Response:
    return await client.post(path, files={"file": ("a.bin", content)}, data=said)


async def usage_of(client: httpx.AsyncClient) -> dict[str, int]:
    return (await client.get("/v3/files/limits")).json()["data"]


async def usage(client: httpx.AsyncClient) -> tuple[int, int]:
    told = await usage_of(client)
    return told["stored"], told["max_stored"]


async def begin(client: httpx.AsyncClient, length: int | None) -> httpx.Response:
    said = {"Upload-Defer-Length": "1"} if length is None else {"Upload-Length": str(length)}
    name = base64.b64encode(b"a.bin").decode()
    return await client.post("/v3/files", headers={**said, "Upload-Metadata": f"filename {name}"})


def refused(answer: httpx.Response) -> None:
    assert (answer.status_code, answer.json()) == (413, {"error": {"code": 413, "message": FULL}})


async def test_stored_bytes_and_their_limit_are_told(server: RunningServer, api: httpx.AsyncClient) -> None:
    assert await usage(api) == (MOST - LEFT, MOST)
    paid = server.client(server.key("paid"), "uploads.localhost")
    told = (await paid.get("/v3/files/limits")).json()["data"]
    assert told["stored"] == 0
    assert told.get("max_stored") is None


async def test_the_same_content_is_stored_once_on_a_network_and_again_in_a_folder(server: RunningServer) -> None:
    client, content = server.client(server.key("same"), "uploads.localhost"), b"same" * 100
    sizes: list[int] = []
    for name, network in (("a", "private"), ("b", "private"), ("c", "public"), ("folder/a", "private")):
        answer = await client.post("/v3/files", files={"file": (name, content)}, data={"network": network})
        assert answer.status_code == 200, answer.text
        sizes.append((await usage_of(client))["stored"])
    assert [size // len(content) for size in sizes] == [1, 1, 2, 3]


async def test_forms_and_signed_addresses(api: httpx.AsyncClient) -> None:
    content = b"form" * 251
    refused(await send(api, content))
    body = {"date": int(clock.utc_now().timestamp()), "expires": 60}
    address = urlsplit((await api.post("/v3/files/sign", json=body)).json()["data"])
    refused(await send(api, content, f"{address.path}?{address.query}"))
    tree, blocks = blocks_of(V1, b"in a CAR" * 125)
    refused(await send(api, encode_car([tree.cid], blocks), car="true"))
    assert await usage(api) == (MOST - LEFT, MOST)


async def test_the_older_paths_say_it_in_their_form(api: httpx.AsyncClient) -> None:
    error = {"error": {"reason": "TOO_LARGE", "details": FULL}}
    for answer in (
        await send(api, b"form" * 251, "/pinning/pinFileToIPFS"),
        await api.post("/pinning/pinJSONToIPFS", json={"pinataContent": "x" * 1000}),
    ):
        assert (answer.status_code, answer.json()) == (413, error)


async def test_uploads_in_parts_before_their_first_byte(api: httpx.AsyncClient) -> None:
    refused(await begin(api, LEFT + 1))
    first = await begin(api, 600)
    assert first.status_code == 201
    refused(await begin(api, 600))
    place = urlsplit(first.headers["Location"]).path
    assert (await api.delete(place)).status_code == 204
    second = await begin(api, 600)
    assert second.status_code == 201
    assert (await api.delete(urlsplit(second.headers["Location"]).path)).status_code == 204


async def test_uploads_in_parts_that_tell_their_length_late(api: httpx.AsyncClient) -> None:
    place = urlsplit((await begin(api, None)).headers["Location"]).path
    headers = {"Content-Type": PART, "Upload-Offset": "0", "Upload-Length": str(LEFT + 1)}
    refused(await api.patch(place, headers=headers, content=b"x"))
    assert (await api.delete(place)).status_code == 204


async def test_one_in_parts_that_was_overtaken_is_no_file(api: httpx.AsyncClient) -> None:
    place = urlsplit((await begin(api, 600)).headers["Location"]).path
    between = await send(api, b"between" * 100)
    assert between.status_code == 200
    headers = {"Content-Type": PART, "Upload-Offset": "0"}
    refused(await api.patch(place, headers=headers, content=b"y" * 600))
    assert (await api.head(place)).status_code == 404
    assert (await api.delete(f"/v3/files/private/{between.json()['data']['id']}")).status_code == 200
    assert await usage(api) == (MOST - LEFT, MOST)


async def test_pins_over_the_limit_are_refused(server: RunningServer, api: httpx.AsyncClient) -> None:
    paid = server.client(server.key("paid"), "uploads.localhost")
    cid = (await send(paid, b"pinned" * 200, network="public")).json()["data"]["cid"]
    answer = await api.post("/v3/files/public/pin_by_cid", json={"cid": cid})
    assert answer.status_code == 200, answer.text
    async with asyncio.timeout(20):
        while (status := await status_of(api, cid)) in {"prechecking", "searching", "retrieving"}:
            await asyncio.sleep(0.02)
    assert status == "over_free_limit"
    assert await usage(api) == (MOST - LEFT, MOST)


async def status_of(api: httpx.AsyncClient, cid: str) -> Any:
    (job,) = (await api.get("/v3/files/public/pin_by_cid", params={"cid": cid})).json()["data"]["jobs"]
    return job["status"]


async def test_deleted_files_free_their_quota(api: httpx.AsyncClient) -> None:
    last = await send(api, b"z" * LEFT)
    assert last.status_code == 200
    assert await usage(api) == (MOST, MOST)
    refused(await send(api, b"1"))
    assert (await api.delete(f"/v3/files/private/{last.json()['data']['id']}")).status_code == 200
    assert await usage(api) == (MOST - LEFT, MOST)
