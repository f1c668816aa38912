"""API keys over HTTP: both forms, limits, pages, revocation; no key has more rights than its creator."""

import asyncio
from typing import Any

import httpx2 as httpx
import pytest

from tests.support.server import RunningServer

GROUPS = "/v3/groups/private"


async def create_key(api: httpx.AsyncClient, permissions: dict[str, Any] | None = None, **more: Any) -> dict[str, str]:
    body = {"keyName": "k", "permissions": permissions or {"admin": True}, **more}
    answer = await api.post("/v3/pinata/keys", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def by_token(server: RunningServer, made: dict[str, str]) -> httpx.AsyncClient:
    return server.client(made["JWT"], "api.localhost")


def by_pair(server: RunningServer, made: dict[str, str], host: str = "api.localhost") -> httpx.AsyncClient:
    client = server.client(None, host)
    client.headers["pinata_api_key"] = made["pinata_api_key"]
    client.headers["pinata_secret_api_key"] = made["pinata_api_secret"]
    return client


async def test_a_key_comes_and_goes(server: RunningServer, api: httpx.AsyncClient) -> None:
    path = "/v3/pinata/keys"
    answer = await api.post(path, json={"keyName": "mine", "permissions": {"admin": True}})
    assert answer.status_code == 200
    made = answer.json()
    assert made.keys() == {"JWT", "pinata_api_key", "pinata_api_secret"}
    assert (len(made["pinata_api_key"]), len(made["pinata_api_secret"])) == (20, 64)
    clients = (by_token(server, made), by_pair(server, made))
    for client in clients:
        assert (await client.get(GROUPS)).status_code == 200
    listed = (await api.get(path)).json()
    assert listed["count"] == 2
    row = listed["keys"][0]
    assert row.keys() == {
        *("id", "name", "key", "max_uses", "uses", "user_id", "scopes", "revoked", "createdAt", "updatedAt")
    }
    assert (row["name"], row["key"], row["revoked"]) == ("mine", made["pinata_api_key"], False)
    assert made["JWT"] not in str(listed)
    assert made["pinata_api_secret"] not in str(listed)
    gone = await api.put(f"{path}/{made['pinata_api_key']}")
    assert (gone.status_code, gone.json()) == (200, "Revoked")
    for client in clients:
        assert (await client.get(GROUPS)).status_code == 401
    assert (await api.get(path, params={"revoked": "true"})).json()["count"] == 1


@pytest.mark.parametrize(
    ("permissions", "scopes"),
    [
        ({"resources": ["org:files:write", "org:groups:read"]}, ["org:files:write", "org:groups:read"]),
        ({"endpoints": {"data": {"pinList": True}, "pinning": {"unpin": False}}}, ["org:files:read"]),
        ({"endpoints": {"pinning": {"pinFileToIPFS": True}}}, ["org:files:write"]),
        ({"endpoints": {"psa": {"pins": {"addPinObject": True}}}}, ["org:files:write"]),
    ],
)
async def test_permissions_become_scopes(
    api: httpx.AsyncClient, permissions: dict[str, Any], scopes: list[str]
) -> None:
    await create_key(api, permissions)
    row = (await api.get("/v3/pinata/keys")).json()["keys"][0]
    assert row["scopes"] == {"admin": False, "resources": scopes}


@pytest.mark.parametrize(
    "body",
    [
        *({}, {"keyName": "k"}, {"permissions": {"admin": True}}, {"keyName": "", "permissions": {"admin": True}}),
        {"keyName": "k", "permissions": {}},
        {"keyName": "k", "permissions": {"admin": False, "resources": []}},
        {"keyName": "k", "permissions": {"resources": ["org:everything"]}},
        {"keyName": "k", "permissions": {"endpoints": {"data": {"everything": True}}}},
        {"keyName": "k", "permissions": {"endpoints": {"data": {"pinList": "yes"}}}},
        {"keyName": "k", "permissions": {"endpoints": {"data": {"pinList": False}}}},
        {"keyName": "k", "permissions": {"admin": True}, "maxUses": 0},
        {"keyName": "k", "permissions": {"admin": True}, "maxUses": 2**31},
        {"keyName": "k" * 101, "permissions": {"admin": True}},
    ],
)
async def test_a_key_for_nothing_is_no_key(api: httpx.AsyncClient, body: dict[str, Any]) -> None:
    assert (await api.post("/v3/pinata/keys", json=body)).status_code == 400
    assert (await api.get("/v3/pinata/keys")).json()["count"] == 1


@pytest.mark.parametrize(
    ("mine", "wanted", "status"),
    [
        ({"org:write"}, {"admin": True}, 403),
        ({"org:write"}, {"resources": ["org:write", "org:files:read", "org:groups:write"]}, 200),
        ({"org:write"}, {"resources": ["org:read"]}, 403),
        ({"org:write"}, {"resources": ["org:agents:read"]}, 403),
        ({"org:read"}, {"resources": ["org:read"]}, 403),
        ({"org:files:write"}, {"resources": ["org:files:write"]}, 403),
        ({"org:write", "org:read"}, {"resources": ["org:read", "org:agents:read"]}, 200),
    ],
)
async def test_no_key_makes_one_that_may_more(
    server: RunningServer, tenant: str, mine: set[str], wanted: dict[str, Any], status: int
) -> None:
    api = server.client(server.key(tenant, scopes=frozenset(mine)), "api.localhost")
    answer = await api.post("/v3/pinata/keys", json={"keyName": "k", "permissions": wanted})
    assert answer.status_code == status, answer.text


async def test_a_key_is_good_for_as_many_requests(server: RunningServer, api: httpx.AsyncClient) -> None:
    made = await create_key(api, {"resources": ["org:groups:read"]}, maxUses=5)
    client, pair = by_token(server, made), by_pair(server, made)
    answers = await asyncio.gather(*(one.get(GROUPS) for one in (client, pair) for _ in range(6)))
    assert sorted(answer.status_code for answer in answers) == [200] * 5 + [401] * 7
    for query, count in (({"exhausted": "true"}, 1), ({"limitedUse": "false"}, 1), ({"exhausted": "false"}, 1)):
        assert (await api.get("/v3/pinata/keys", params=query)).json()["count"] == count
    row = (await api.get("/v3/pinata/keys", params={"exhausted": "true"})).json()["keys"][0]
    assert (row["uses"], row["max_uses"]) == (5, 5)


async def test_a_counted_key_makes_no_uncounted_one(server: RunningServer, api: httpx.AsyncClient) -> None:
    client = by_token(server, await create_key(api, maxUses=10))
    body = {"keyName": "k", "permissions": {"resources": ["org:files:read"]}}
    assert (await client.post("/v3/pinata/keys", json=body)).status_code == 403


async def test_a_pair_has_to_match_and_stays_on_the_storage_addresses(
    server: RunningServer, api: httpx.AsyncClient
) -> None:
    one, two = await create_key(api), await create_key(api)
    for handle, secret in (
        (one["pinata_api_key"], two["pinata_api_secret"]),
        (one["pinata_api_key"], ""),
        ("", one["pinata_api_secret"]),
        (one["pinata_api_key"], "x" * 5000),
        (one["pinata_api_key"], one["JWT"]),
    ):
        forged = {"pinata_api_key": handle, "pinata_api_secret": secret}
        assert (await by_pair(server, forged).get(GROUPS)).status_code == 401
    for host in ("agents.localhost", "shop.gateways.localhost"):
        assert (await by_pair(server, one, host).get(GROUPS)).status_code in {401, 404}
    assert (await by_pair(server, one, "agents.localhost").get("/v0/agents")).status_code == 401
    both = by_pair(server, one)
    both.headers["Authorization"] = "Bearer wrong"
    assert (await both.get(GROUPS)).status_code == 401


async def test_another_tenants_keys_are_not_there(server: RunningServer, api: httpx.AsyncClient) -> None:
    made, foreign = await create_key(api), server.client(server.key("foreign"), "api.localhost")
    answer = await foreign.put(f"/v3/pinata/keys/{made['pinata_api_key']}")
    assert (answer.status_code, answer.json()) == (404, {"error": {"code": 404, "message": "API key not found"}})
    assert made["pinata_api_key"] not in (await foreign.get("/v3/pinata/keys")).text
    assert (await by_pair(server, made).get(GROUPS)).status_code == 200


async def test_old_paths_have_the_old_errors(server: RunningServer) -> None:
    refused = await server.client("x", "api.localhost").get("/data/testAuthentication")
    assert (refused.status_code, refused.json()["error"].keys()) == (401, {"reason", "details"})
    assert refused.json()["error"]["reason"] == "INVALID_CREDENTIALS"
