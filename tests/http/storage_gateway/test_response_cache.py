"""The cache of gateway responses: keys, lifetime, bounds; and on a server, that every change shows at once."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2 as httpx
import pytest

from roost.core import clock
from roost.http.server.request_head import Headers, RequestHead, RequestHeaders
from roost.http.storage_gateway.response_cache import MAX_BODY, CachedResponse, CacheKey, ResponseCache, cache_key
from roost.storage.content.model import ContentNetwork
from roost.storage.files.model import File
from tests.contract.storage import keep
from tests.support.server import RunningServer, running

KEY: CacheKey = (b"/ipfs/x", "gate", "")


def response(body: bytes = b"body") -> CachedResponse:
    def count(_headers: Mapping[str, str], _sent: int) -> None: ...

    return CachedResponse(b"HTTP/1.1 200 OK\r\n", body, count)


def key(*lines: tuple[bytes, bytes], method: bytes = b"GET", version: str = "1.1") -> CacheKey | None:
    headers: Headers = [(b"host", b"gate"), *lines]
    return cache_key(RequestHead(method, b"/ipfs/x", RequestHeaders(version, headers), websocket=False))


async def publish(
    server: RunningServer, tenant: str, content: bytes
) -> tuple[httpx.AsyncClient, File, dict[str, Any], httpx.AsyncClient]:
    """Return the tenant's client, its public file, its first gateway, and a visitor of that."""
    api = server.client(server.key(tenant), "api.localhost")
    file = await keep(server, tenant, ContentNetwork.PUBLIC, content)
    (gateway,) = (await api.get("/v3/gateways")).json()["data"]["rows"]
    return api, file, gateway, server.client(host=httpx.URL(gateway["url"]).host)


def test_a_key_has_all_that_a_response_depends_on() -> None:
    assert key() == KEY
    assert key((b"user-agent", b"x"), (b"cookie", b"x"), (b"origin", b"x")) == KEY
    assert key((b"accept", b"a"), (b"accept", b"b")) == (b"/ipfs/x", "gate", "a,b")
    assert key(method=b"HEAD") is None
    assert key(version="1.0") is None


@pytest.mark.parametrize(
    "name", [b"range", b"if-range", b"if-match", b"if-none-match", b"cache-control", b"service-worker", b"upgrade"]
)
def test_other_headers_prevent_it(name: bytes) -> None:
    assert key((name, b"x")) is None
    assert key((b"content-length", b"1")) is None
    assert key((b"expect", b"100-continue")) is None


def test_an_entry_lasts_half_a_second_and_until_the_data_change(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds, version = [0.0], [0]
    monkeypatch.setattr(clock, "monotonic_seconds", lambda: seconds[0])
    cache = ResponseCache(lambda: version[0])
    kept = response()
    cache.add(KEY, 0, kept)
    seconds[0] = 0.5
    assert cache.find(KEY) is kept
    seconds[0] = 0.51
    assert cache.find(KEY) is None
    cache.add(KEY, 0, kept)
    version[0] = 1
    assert cache.find(KEY) is None
    cache.add(KEY, 0, kept)  # made of older data
    assert cache.find(KEY) is None
    cache.add(KEY, 1, kept)
    assert cache.find(KEY) is kept


def test_the_bytes_are_bounded() -> None:
    cache = ResponseCache(lambda: 0)
    cache.add(KEY, 0, response(bytes(MAX_BODY + 1)))
    assert cache.find(KEY) is None
    keys: list[CacheKey] = [(b"/%d" % number, "gate", "") for number in range(1000)]
    for one in keys * 2:
        cache.add(one, 0, response(bytes(MAX_BODY)))
    kept = [one for one in keys if cache.find(one)]
    assert kept == keys[-len(kept) :]
    assert 240 < len(kept) < 256


async def test_cached_responses_are_the_same_and_changes_show_at_once(server: RunningServer) -> None:
    api, file, gateway, visitor = await publish(server, "owner", b"hello")
    path = f"/ipfs/{file.cid}"

    async def get() -> tuple[int, bytes, dict[str, str]]:
        answer = await visitor.get(path)
        own = {"date", "x-request-id"}
        assert own <= answer.headers.keys()
        return answer.status_code, answer.content, {k: v for k, v in answer.headers.items() if k not in own}

    async def is_cached() -> bool:
        cached_key = (path.encode(), str(visitor.headers["Host"]), "*/*")
        return server.roost.edge.cache.find(cached_key) is not None

    first = await get()
    assert first[:2] == (200, b"hello")
    assert await is_cached()
    assert await get() == first
    assert (await visitor.get(path, headers={"Range": "bytes=1-2"})).content == b"el"
    assert (await visitor.head(path)).content == b""
    control = f"/v3/gateways/{gateway['id']}/access_tokens"
    token = (await api.post(control, json={})).json()["data"]["value"]
    assert (await visitor.get(path)).status_code == 401
    assert (await visitor.get(path, headers={"x-pinata-gateway-token": token})).status_code == 200
    assert not await is_cached()


async def test_deleted_content_is_not_served(server: RunningServer) -> None:
    api, file, _, visitor = await publish(server, "deleter", b"gone soon")
    for _ in range(2):
        assert (await visitor.get(f"/ipfs/{file.cid}")).status_code == 200
    assert (await api.delete(f"/v3/files/public/{file.id}")).status_code == 200
    assert (await visitor.get(f"/ipfs/{file.cid}")).status_code == 404


async def test_cached_responses_are_counted(server: RunningServer) -> None:
    _, file, _, visitor = await publish(server, "counted", b"12345")
    for _ in range(3):
        assert (await visitor.get(f"/ipfs/{file.cid}")).status_code == 200
    counts = [count for hit, count in server.roost.storage.gateways.hit_counter._pending.items() if hit.cid == file.cid]
    assert [(count.requests, count.bandwidth) for count in counts] == [(3, 15)]


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    async with running(tmp_path_factory.mktemp("d") / "data") as server:
        yield server
