"""Storage gateways, plugins, swaps and signatures over HTTP (contract, Storage API, operations 1 and 4)."""

import re
from typing import Any

import httpx2 as httpx
import pytest

from roost.storage.content.model import ContentNetwork
from roost.storage.files.signatures.model import format_milliseconds
from tests.contract.storage import keep
from tests.storage.files.signatures.test_ethereum import account, sign_typed
from tests.support.server import RunningServer

PLUGINS = "/v3/gateways/plugins"
ME = account().address


@pytest.fixture
def foreign(server: RunningServer) -> httpx.AsyncClient:
    return server.client(server.key("foreign"), "api.localhost")


def status_and_body(answer: httpx.Response) -> tuple[int, Any]:
    return answer.status_code, answer.json()


def refused(answer: httpx.Response) -> int:
    assert answer.json()["error"].keys() == {"code", "message"}
    assert answer.json()["error"]["code"] == answer.status_code
    return answer.status_code


async def first_gateway(api: httpx.AsyncClient) -> dict[str, Any]:
    return (await api.get("/v3/gateways")).json()["data"]["rows"][0]


async def test_gateways_come_and_go(server: RunningServer, api: httpx.AsyncClient) -> None:
    name, prefix = "shop-0", "/v3/gateways"
    begun = (await api.get(prefix)).json()["data"]
    assert (begun["count"], len(begun["rows"])) == (1, 1)
    assert status_and_body(await api.get(f"{prefix}/exists/{name}")) == (200, {"data": {"exists": False}})
    created = await api.post(prefix, json={"domain": name})
    made = created.json()["data"]
    assert made == {
        "id": made["id"],
        "domain": name,
        "url": f"http://{name}.gateways.localhost:{server.port}",
        "restrict": True,
        "created_at": made["created_at"],
        "settings": {"restriction_policies": {"accessTokens": [], "allowedHosts": [], "allowedIPAddresses": []}},
        "custom_domains": [],
    }
    assert status_and_body(await api.get(f"{prefix}/{made['id']}")) == (200, {"data": made})
    assert status_and_body(await api.get(prefix)) == (200, {"data": {"count": 2, "rows": [*begun["rows"], made]}})
    second = await api.get(prefix, params={"pageSize": 1, "page": 2})
    assert status_and_body(second) == (200, {"data": {"count": 2, "rows": [made]}})
    assert refused(await api.post(prefix, json={"domain": name})) == 409
    assert status_and_body(await api.get(f"{prefix}/exists/{name}")) == (200, {"data": {"exists": True}})
    assert status_and_body(await api.delete(f"{prefix}/{made['id']}")) == (200, {"data": None})
    assert refused(await api.get(f"{prefix}/{made['id']}")) == 404
    assert refused(await api.post(prefix, json={"domain": name})) == 409


@pytest.mark.parametrize("domain", ["", "ab", "www", "my.shop", "xn--shop", "a_b", "get-paypal", "-a-", "a" * 64, None])
async def test_names_that_nobody_gets(api: httpx.AsyncClient, domain: Any) -> None:
    assert refused(await api.post("/v3/gateways", json={"domain": domain})) == 400


async def test_access_controls_are_added_and_removed(api: httpx.AsyncClient) -> None:
    made = await first_gateway(api)
    path = f"/v3/gateways/{made['id']}"
    token = (await api.post(f"{path}/access_tokens")).json()["data"]
    assert token["value"].startswith("rgw_")
    for kind, body, value in (
        ("ips", {"ip": "10.1.2.3/8"}, "10.0.0.0/8"),
        ("ips", {"ip": "2001:db8::1"}, "2001:db8::1"),
        ("hosts", {"host": "https://App.example"}, "app.example"),
    ):
        added = (await api.post(f"{path}/{kind}", json=body)).json()["data"]
        assert added["value"] == value
        assert added in (await api.get(f"{path}/{kind}")).json()["data"]
    got = await api.get(path)
    assert token["value"] not in got.text
    data = got.json()["data"]
    policies = data["settings"]["restriction_policies"]
    assert not data["restrict"]
    assert {kind: len(controls) for kind, controls in policies.items()} == {
        "accessTokens": 1,
        "allowedHosts": 1,
        "allowedIPAddresses": 2,
    }
    assert policies["accessTokens"][0]["id"] == token["id"]
    for kind, name in (
        ("access_tokens", token["id"]),
        ("ips", "10.0.0.0%2F8"),
        ("ips", policies["allowedIPAddresses"][1]["id"]),
        ("hosts", "app.example"),
    ):
        assert status_and_body(await api.delete(f"{path}/{kind}/{name}")) == (200, {"data": None})
        assert refused(await api.delete(f"{path}/{kind}/{name}")) == 404
    assert (await api.get(path)).json()["data"]["restrict"]


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        *(("ips", {"ip": "10.0.0.0/40"}), ("ips", {"ip": "x"}), ("ips", {}), ("hosts", {"host": "a b"})),
        *(("hosts", {"host": ""}), ("hosts", {})),
        ("nothing", {}),
    ],
)
async def test_controls_that_are_none(api: httpx.AsyncClient, kind: str, body: dict[str, str]) -> None:
    made = await first_gateway(api)
    assert refused(await api.post(f"/v3/gateways/{made['id']}/{kind}", json=body)) in {400, 405}
    assert await first_gateway(api) == made


async def test_plugins_are_installed_once_and_removed(api: httpx.AsyncClient) -> None:
    gateway_id = (await first_gateway(api))["id"]
    path = f"{PLUGINS}/{gateway_id}"
    assert status_and_body(await api.get(path)) == (200, {"data": []})
    for number in (2, 1, 2):
        added = await api.post(path, json={"plugin_id": number})
        assert status_and_body(added) == (200, {"data": {"gateway_id": gateway_id, "plugin_id": number}})
    both = [{"gateway_id": gateway_id, "plugin_id": number} for number in (1, 2)]
    listed = await api.get(path)
    assert status_and_body(listed) == (200, {"data": both})
    assert listed.headers["content-type"] == "application/json; charset=utf-8"
    assert listed.headers["x-request-id"]
    assert status_and_body(await api.get(PLUGINS)) == (200, {"data": both})
    assert status_and_body(await api.get(f"/v3/ipfs/gateway_plugins/{gateway_id}")) == (
        200,
        {"data": both},
    )  # the contract's path
    assert status_and_body(await api.delete(f"{path}/plugin/1")) == (200, {"data": None})
    assert refused(await api.delete(f"{path}/plugin/1")) == 404
    assert refused(await api.post(path, json={"plugin_id": 3})) == 404
    for mistyped in ("x", "1", True, 1.5):
        assert refused(await api.post(path, json={"plugin_id": mistyped})) == 400
    assert status_and_body(await api.get(path)) == (200, {"data": both[1:]})


async def test_marketplace_lists_all_plugins(api: httpx.AsyncClient) -> None:
    path = f"{PLUGINS}/marketplace"
    plugins = (await api.get(path)).json()["data"]
    assert [plugin["id"] for plugin in plugins] == [1, 2]
    assert all(plugin.keys() == {"id", "name", "description", "tags"} for plugin in plugins)
    assert status_and_body(await api.get(f"{path}/2")) == (200, {"data": plugins[1]})
    assert refused(await api.get(f"{path}/3")) == 404


async def test_swaps_are_set_and_removed(
    server: RunningServer, api: httpx.AsyncClient, foreign: httpx.AsyncClient, tenant: str
) -> None:
    one, two = [(await keep(server, tenant, ContentNetwork.PUBLIC, data)).cid for data in (b"one", b"two")]
    path = f"/v3/files/public/swap/{one}"
    assert refused(await api.get(path)) == 404
    for field in ("swap_cid", "swapCid"):
        put = await api.put(path, json={field: two})
        assert put.status_code == 200
        assert put.json()["data"] == {"mapped_cid": two, "created_at": put.json()["data"]["created_at"]}
    domain = (await first_gateway(api))["domain"]
    assert len((await api.get(path, params={"domain": domain})).json()["data"]) == 2
    assert refused(await api.get(path, params={"domain": "not-mine"})) == 404
    gone = await api.delete(path)
    assert (status_and_body(gone), gone.reason_phrase) == ((200, {"data": None}), "OK")
    assert [line["mapped_cid"] for line in (await api.get(path)).json()["data"]] == [None, two, two]
    for client, wrong in ((foreign, path), (api, path.replace("public", "private"))):
        assert refused(await client.put(wrong, json={"swap_cid": two})) == 404
        assert refused(await client.delete(wrong)) == 404
        assert refused(await client.get(wrong)) == 404
    for body in ({"swap_cid": "x"}, {"swap_cid": one}, {}):
        assert refused(await api.put(path, json=body)) == 400


async def test_signatures_are_checked_and_removed(
    server: RunningServer, api: httpx.AsyncClient, foreign: httpx.AsyncClient, tenant: str
) -> None:
    file = await keep(server, tenant, ContentNetwork.PRIVATE, b"signed")
    path = f"/v3/files/private/signature/{file.cid}"
    body = {"signature": sign_typed(account(), file.cid, format_milliseconds(file.created_at)), "address": ME}
    assert refused(await api.get(path)) == 404
    added = await api.post(path, json=body)
    assert status_and_body(added) == (200, {"data": {"cid": file.cid, "signature": body["signature"]}})
    assert {"date", "content-length", "connection", "x-request-id"} <= added.headers.keys()
    assert added.headers["content-type"] == "application/json; charset=utf-8"
    assert re.fullmatch(r"max-age=\d+; includeSubDomains", added.headers["strict-transport-security"])
    assert status_and_body(await api.get(path)) == (200, added.json())
    assert refused(await api.post(path, json=body)) == 409
    for client, wrong in ((foreign, path), (api, path.replace("private", "public"))):
        assert refused(await client.post(wrong, json=body)) == 404
        assert refused(await client.get(wrong)) == 404
        assert refused(await client.delete(wrong)) == 404
    assert status_and_body(await api.delete(path)) == (200, {"data": None})
    assert refused(await api.delete(path)) == 404
    wrong_signer = {**body, "address": account(2).address}
    for bad in (
        *({}, {"signature": body["signature"]}, {"address": ME}, wrong_signer, {**body, "signature": "0x00"}),
        *({**body, "address": "0x" + ME[2:].swapcase()}, {**body, "signature": body["signature"][:-2] + "1d"}),
    ):
        assert refused(await api.post(path, json=bad)) == 400
    assert refused(await api.post("/v3/files/private/signature/nonsense", json=body)) == 400
    assert refused(await api.get(path)) == 404


async def test_another_tenants_gateway_is_not_there(api: httpx.AsyncClient, foreign: httpx.AsyncClient) -> None:
    made = await first_gateway(api)
    token = (await api.post(f"/v3/gateways/{made['id']}/access_tokens")).json()["data"]
    before = await first_gateway(api)
    path = f"/v3/gateways/{made['id']}"
    for method, where, body in (
        ("GET", path, None),
        ("DELETE", path, None),
        ("POST", f"{path}/access_tokens", None),
        ("POST", f"{path}/ips", {"ip": "0.0.0.0/0"}),
        ("POST", f"{path}/hosts", {"host": "evil.example"}),
        ("GET", f"{path}/access_tokens", None),
        ("DELETE", f"{path}/access_tokens/{token['id']}", None),
        ("GET", f"{PLUGINS}/{made['id']}", None),
        ("POST", f"{PLUGINS}/{made['id']}", {"plugin_id": 2}),
        ("DELETE", f"{PLUGINS}/{made['id']}/plugin/2", None),
    ):
        answer = await foreign.request(method, where, json=body)
        assert status_and_body(answer) == (404, {"error": {"code": 404, "message": "Gateway not found"}})
    assert await first_gateway(api) == before


@pytest.mark.parametrize(
    ("scope", "gateways", "signatures"),
    [
        ("org:gateways:read", {"GET"}, set[str]()),
        ("org:gateways:write", {"GET", "POST"}, set[str]()),
        ("org:files:read", set[str](), {"GET"}),
        ("org:files:write", set[str](), {"GET", "POST", "DELETE"}),
        ("org:groups:read", set[str](), set[str]()),
    ],
)
async def test_gateways_and_signatures_need_their_scopes(
    server: RunningServer, scope: str, gateways: set[str], signatures: set[str]
) -> None:
    """Each scope opens its operations and no other (A21)."""
    api = server.client(server.key("scopes", scopes=frozenset({scope})), "api.localhost")
    nowhere = "bafkreih5aznjvttude6c3wbvqeebb6rlx5wkbzyppv7garjiubll2ceym4"
    body = {"signature": "0x" + "11" * 64 + "1b", "address": ME.lower()}
    for method in ("GET", "POST"):
        answer = await api.request(method, "/v3/gateways", json=None if method == "GET" else {"domain": "www"})
        assert (answer.status_code != 403) == (method in gateways)
    for method in ("GET", "POST", "DELETE"):
        answer = await api.request(
            method, f"/v3/files/public/signature/{nowhere}", json=body if method == "POST" else None
        )
        assert answer.status_code == (404 if method in signatures else 403)
        if answer.status_code == 403:
            needed = f"org:files:{'read' if method == 'GET' else 'write'}"
            told_so = {"code": 403, "message": f"Permission denied: the key needs the scope {needed}"}
            assert answer.json() == {"error": told_so}
