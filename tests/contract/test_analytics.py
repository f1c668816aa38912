"""Analytics over HTTP: counted responses, all paths, filters, scopes and tenants."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2 as httpx
import pytest

from roost.core import clock
from roost.storage.content.model import ContentNetwork
from tests.contract.storage import keep
from tests.support.server import RunningServer, running

TOP = ["/v3/analytics/gateways/top", "/v3/ipfs/gateway_analytics_top"]
SERIES = ["/v3/analytics/gateways/time_series", "/v3/ipfs/gateway_analytics_time_series"]
TEXT = b"counted content"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    async with running(tmp_path_factory.mktemp("d") / "data") as server:
        yield server


async def gateway(server: RunningServer, api: httpx.AsyncClient) -> tuple[str, httpx.AsyncClient]:
    """Return the name of the tenant's first gateway, and a client of it."""
    name = (await api.get("/v3/gateways")).json()["data"]["rows"][0]["domain"]
    return name, server.client(host=f"{name}.gateways.localhost")


async def top(api: httpx.AsyncClient, **asked: Any) -> list[tuple[str, int, int]]:
    answer = await api.get(TOP[0], params=asked)
    assert answer.status_code == 200, answer.text
    return [(one["value"], one["requests"], one["bandwidth"]) for one in answer.json()["data"]]


async def wait_for_top(api: httpx.AsyncClient, wanted: list[tuple[str, int, int]], **asked: Any) -> None:
    """Wait for a result: the server counts a response after its last byte, so perhaps after the client has it."""
    deadline = clock.monotonic_seconds() + 20
    while (found := await top(api, **asked)) != wanted and clock.monotonic_seconds() < deadline:
        await asyncio.sleep(0.02)
    assert found == wanted


async def test_answers_count_as_they_went_out(server: RunningServer, api: httpx.AsyncClient, tenant: str) -> None:
    cid = (await keep(server, tenant, ContentNetwork.PUBLIC, TEXT)).cid
    _, visitor = await gateway(server, api)
    path = f"/ipfs/{cid}"
    whole = await visitor.get(path, headers={"User-Agent": "one"})
    await visitor.head(path, headers={"User-Agent": "two"})
    await visitor.get(path, headers={"User-Agent": "three", "Range": "bytes=0-4"})
    known = await visitor.get(path, headers={"User-Agent": "four", "If-None-Match": whole.headers["etag"]})
    assert known.status_code == 304
    await visitor.get(f"{path}?format=raw", headers={"User-Agent": "five"})
    await wait_for_top(
        api,
        [("five", 1, 15), ("four", 1, 0), ("one", 1, 15), ("three", 1, 5), ("two", 1, 0)],
        by="user_agent",
    )
    assert await top(api, by="cid") == [(cid, 5, 35)]
    assert await top(api, by="cid", http_status_code="206") == [(cid, 1, 5)]
    assert await top(api, by="file_name") == [("n", 5, 35)]
    assert await top(api, by="country") == await top(api, by="region") == [("unknown", 5, 35)]


async def test_refused_requests_are_not_counted(server: RunningServer, api: httpx.AsyncClient, tenant: str) -> None:
    secret = (await keep(server, tenant, ContentNetwork.PRIVATE, b"a secret")).cid
    public = (await keep(server, tenant, ContentNetwork.PUBLIC, b"in the open")).cid
    name, visitor = await gateway(server, api)
    for path in (f"/ipfs/{secret}", f"/ipfs/{public}/below", "/ipfs/nonsense", f"/files/{secret}?X-Algorithm=x"):
        assert (await visitor.get(path)).status_code >= 400
    assert (await visitor.post(f"/ipfs/{public}")).status_code == 405
    assert (await visitor.get(f"/ipfs/{public}", headers={"Range": "bytes=99-"})).status_code == 416
    rows = (await api.get("/v3/gateways")).json()["data"]["rows"]
    await api.post(f"/v3/gateways/{rows[0]['id']}/ips", json={"ip": "203.0.113.9"})
    assert (await visitor.get(f"/ipfs/{public}")).status_code == 401
    assert await top(api) == []
    series = (await api.get(SERIES[0], params={"gateway_domain": name})).json()["data"]
    assert (series["total_requests"], series["total_bandwidth"]) == (0, 0)


async def test_private_files_count_too(server: RunningServer, api: httpx.AsyncClient, tenant: str) -> None:
    cid = (await keep(server, tenant, ContentNetwork.PRIVATE, b"a secret")).cid
    name, visitor = await gateway(server, api)
    link = {"url": f"http://{name}.gateways.localhost:{server.port}/files/{cid}", "expires": 60, "date": 0}
    link["date"] = int(clock.utc_now().timestamp())
    signed = (await api.post("/v3/files/private/download_link", json={**link, "method": "GET"})).json()["data"]
    fetched = await visitor.get("/files/" + signed.partition("/files/")[2], headers={"Referer": signed})
    assert fetched.content == b"a secret"
    await wait_for_top(api, [(cid, 1, 8)])
    assert await top(api, by="referer") == [(f"http://{name}.gateways.localhost:{server.port}", 1, 8)]


async def test_a_download_that_is_broken_off_counts_what_went_out(
    server: RunningServer, api: httpx.AsyncClient, tenant: str
) -> None:
    size = 32 * 1024**2
    cid = (await keep(server, tenant, ContentNetwork.PUBLIC, bytes(size))).cid
    _, visitor = await gateway(server, api)
    async with visitor.stream("GET", f"/ipfs/{cid}") as answer:
        async for _ in answer.aiter_raw():
            break
    deadline = clock.monotonic_seconds() + 20
    while not (found := await top(api)) and clock.monotonic_seconds() < deadline:
        await asyncio.sleep(0.02)
    ((value, requests, bandwidth),) = found
    assert (value, requests) == (cid, 1)
    assert 0 < bandwidth < size


@pytest.mark.parametrize(("first", "second"), [TOP, SERIES])
async def test_both_paths_are_one(
    server: RunningServer, api: httpx.AsyncClient, tenant: str, first: str, second: str
) -> None:
    cid = (await keep(server, tenant, ContentNetwork.PUBLIC, TEXT)).cid
    name, visitor = await gateway(server, api)
    await visitor.get(f"/ipfs/{cid}")
    await wait_for_top(api, [(cid, 1, 15)])
    asked = {"gateway_domain": f"{name}.gateways.localhost:{server.port}", "limit": 5}
    answers = [await api.get(path, params=asked) for path in (first, second)]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert answers[0].json() == answers[1].json()


async def test_days_and_weeks(server: RunningServer, api: httpx.AsyncClient, tenant: str) -> None:
    cid = (await keep(server, tenant, ContentNetwork.PUBLIC, TEXT)).cid
    _, visitor = await gateway(server, api)
    await visitor.get(f"/ipfs/{cid}")
    await wait_for_top(api, [(cid, 1, 15)])
    today = clock.utc_now().date().isoformat()
    for asked in ({}, {"by": "day"}, {"date_interval": "day"}, {"date_interval": "day", "by": "week"}):
        data = (await api.get(SERIES[0], params=asked)).json()["data"]
        assert data.keys() == {"total_requests", "total_bandwidth", "time_periods"}
        assert (data["total_requests"], data["total_bandwidth"], len(data["time_periods"])) == (1, 15, 30)
        assert data["time_periods"][0] == {"period_start_time": today, "requests": 1, "bandwidth": 15}
    for asked in ({"by": "week"}, {"date_interval": "week"}):
        data = (await api.get(SERIES[0], params={**asked, "start_date": today, "end_date": today})).json()["data"]
        ((period),) = data["time_periods"]
        assert period["period_start_time"] <= today
        assert period["requests"] == 1
    moments = {"start_date": f"{today}T00:00:00Z", "end_date": f"{today}T23:00:00+00:00", "includesCount": "false"}
    assert await top(api, **moments) == [(cid, 1, 15)]


@pytest.mark.parametrize(
    "asked",
    [
        *({"by": "colour"}, {"sort_by": "size"}, {"sort_order": "up"}, {"limit": 0}, {"limit": 1001}, {"limit": "x"}),
        *({"start_date": "yesterday"}, {"start_date": "2026-02-30"}, {"end_date": ""}, {"end_date": "9" * 50}),
        *({"start_date": "2026-01-02", "end_date": "2026-01-01"}, {"cid": "nonsense"}, {"http_status_code": "500"}),
        *({"user_agent": "x" * 2000}, {"gateway_domain": "x" * 300}),
        *({"gateway_domain": "\0"}, {"referer": "\0"}),
    ],
)
async def test_questions_that_make_no_sense(api: httpx.AsyncClient, asked: dict[str, Any]) -> None:
    for path in (*TOP, *SERIES):
        answer = await api.get(path, params=asked)
        assert answer.status_code == 400, path
        assert answer.json()["error"].keys() == {"code", "message"}
        assert answer.json()["error"]["code"] == 400


async def test_tenants_are_kept_apart(server: RunningServer, api: httpx.AsyncClient, tenant: str) -> None:
    cid = (await keep(server, tenant, ContentNetwork.PUBLIC, TEXT)).cid
    name, visitor = await gateway(server, api)
    await visitor.get(f"/ipfs/{cid}")
    await wait_for_top(api, [(cid, 1, 15)])
    foreign = server.client(server.key("foreign"), "api.localhost")
    for path in (*TOP, *SERIES):
        refused = await foreign.get(path, params={"gateway_domain": name})
        absent = await foreign.get(path, params={"gateway_domain": "nobodys"})
        assert refused.status_code == absent.status_code == 404
        assert refused.json() == absent.json() == {"error": {"code": 404, "message": "Gateway not found"}}
    assert await top(foreign) == await top(foreign, cid=cid) == []


async def test_filters_and_orders_select_requests(server: RunningServer, api: httpx.AsyncClient, tenant: str) -> None:
    cid = (await keep(server, tenant, ContentNetwork.PUBLIC, TEXT)).cid
    _, visitor = await gateway(server, api)
    for agent, referer in (("one", "https://a.example/x"), ("two", "https://b.example/y"), ("two", None)):
        headers = {"User-Agent": agent} | ({} if referer is None else {"Referer": referer})
        await visitor.get(f"/ipfs/{cid}?filename=called.txt", headers=headers)
    await wait_for_top(api, [("two", 2, 30), ("one", 1, 15)], by="user_agent")
    assert await top(api, by="user_agent", referer="https://a.example/z") == [("one", 1, 15)]
    assert await top(api, by="user_agent", referrer="b.example") == [("two", 1, 15)]
    assert await top(api, by="referrer", user_agent="two") == [("https://b.example", 1, 15), ("unknown", 1, 15)]
    assert await top(api, by="referer", referer="unknown") == [("unknown", 1, 15)]
    assert await top(api, by="cid", file_name="called.txt", cid=cid) == [(cid, 3, 45)]
    assert await top(api, by="cid", file_name="n") == await top(api, by="cid", country="DE") == []
    ordered = await top(api, by="user_agent", sort_by="bandwidth", sort_order="asc", limit=1)
    assert ordered == [("one", 1, 15)]


@pytest.mark.parametrize(
    ("scope", "status"),
    [
        *(("org:analytics:read", 200), ("org:analytics:write", 200), ("org:read", 200), ("org:write", 200)),
        *(("org:gateways:read", 403), ("org:files:write", 403)),
    ],
)
async def test_analytics_need_their_scope(server: RunningServer, scope: str, status: int) -> None:
    narrow = server.client(server.key("scopes", scopes=frozenset({scope})), "api.localhost")
    for path in (*TOP, *SERIES):
        assert (await narrow.get(path)).status_code == status
        assert (await server.client(host="api.localhost").get(path)).status_code == 401
