"""Access to another tenant's objects, or through the wrong object of one's own: no information, no change."""

import asyncio
import re
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import httpx2 as httpx
import pytest

from roost.storage.content.model import ContentNetwork
from roost.storage.gateways.model import GATEWAY_LIMIT
from tests.contract.endpoints import routes
from tests.contract.storage import keep
from tests.contract.tenant_objects import NOWHERE, TenantObjects, create_objects
from tests.storage.files.signatures.test_ethereum import account, sign_typed
from tests.support.server import RunningServer

UNKNOWN = "00000000-0000-4000-8000-000000000000"
STRANGER = "bafkreie7ohywtosou76tasm7j63yigtzxe7d5zqus4zu3j6oltvgtibeom"  # of no tenant
NOBODYS = frozenset({"/v3/gateways/plugins/marketplace/{plugin_id}"})
"""The same for all tenants; with them the names of gateways, which are public."""
OTHERWISE = {("POST", "/v3/files/{file_id}"): 403, ("DELETE", "/pinning/unpin/{cid}"): 400}
"""A signed address without a signature; a status of the older API."""
BODIES: Mapping[str, Mapping[str, Any]] = {
    "signature": {"signature": "0x" + "11" * 64 + "1b", "address": account().address},
    "access_tokens": {},
    "ips": {"ip": "0.0.0.0/0"},
    "hosts": {"host": "evil.example"},
    "custom_domain": {"domain": "evil.example.com", "cid": None},
    "plugins": {"plugin_id": 1},
    "groups": {"name": "taken", "is_public": True},
    "cids": {"cids": [NOWHERE]},
    "files": {"name": "taken", "keyvalues": {"a": "b"}},
    "pins": {"cid": NOWHERE, "name": "taken"},
    "query": {"text": "private"},
    "webhooks": {"description": "taken", "url": "https://evil.example/"},
    "payment_instructions": {"name": "taken"},
}


@pytest.fixture(scope="module")
async def victim(server: RunningServer) -> TenantObjects:
    return await create_objects(server, "victim")


@pytest.fixture
def attacker(server: RunningServer) -> httpx.AsyncClient:
    return server.client(server.key("attacker"), "api.localhost")


def _kind(path: str) -> str:
    """Return the kind of object that `{id}` means in a path."""
    if "pin_by_cid" in path or "/psa/" in path:
        return "pin"
    return (
        next(
            kind
            for kind in ("group", "gateway", "webhook", "payment_instruction", "")
            if f"/{kind}s" in path or not kind
        )
        or "file"
    )


def _fields(path: str, ids: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """Yield the path parameters for an owner's objects, for both networks and all kinds of access controls."""
    for network in ("private", "public"):
        private = network == "private"
        own = {
            "network": network,
            "id": ids[_kind(path)],
            "cid": ids["cid" if private else "public_cid"],
            "file_id": ids["transfer" if "{token}" in path else "file"],
            "gateway_id": ids["gateway"],
            "domainId": ids["domain"],
            "requestid": ids["pin"],
            "key": ids["key"],
            "token": "0" * 64,  # an upload needs no other credential
            "plugin_id": "2",
            "delivery": UNKNOWN,
            "agentId": "a" * 16,
        }
        for kind, control in (("access_tokens", "access_token"), ("ips", "ip"), ("hosts", "host")):
            yield own | {"kind": kind, "control": ids[control]}


def attempts(ids: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return method, address and path of every operation on an object of a tenant."""
    found: dict[tuple[str, str], str] = {}
    for (method, path), row in routes().items():
        if "storage" not in row["addresses"] and "{token}" not in path:
            continue
        if "{" not in path or path in NOBODYS or set(re.findall(r"{(\w+)}", path)) <= {"network", "domain"}:
            continue
        for fields in _fields(path, ids):
            found[method, path.format(**fields)] = path
    return [(method, target, path) for (method, target), path in found.items()]


def valid_body(method: str, path: str, mine: str) -> dict[str, Any]:
    """Return a valid body for an endpoint, from a tenant that owns the file `mine`."""
    if method == "PATCH" and "{token}" in path:
        headers = {"Upload-Offset": "10", "Content-Type": "application/offset+octet-stream"}
        return {"content": bytes(5), "headers": headers}
    bodies = {**BODIES, "swap": {"swap_cid": mine}}
    names = [segment for segment in path.split("/") if segment in bodies]
    return {"json": bodies[names[-1]]} if names and (method in {"POST", "PUT", "PATCH"} or names[-1] == "cids") else {}


async def test_objects_of_another_tenant_are_not_found(
    server: RunningServer, victim: TenantObjects, attacker: httpx.AsyncClient
) -> None:
    """The response is the same as for an object that does not exist."""
    mine = (await keep(server, "attacker", ContentNetwork.PUBLIC, b"a swap")).cid
    before = await victim.state()
    nobody = dict.fromkeys(victim.ids, UNKNOWN) | {"cid": STRANGER, "public_cid": STRANGER, "key": "0" * 20}
    tried = attempts(victim.ids)
    unknown = {path: target for _, target, path in attempts(nobody)}
    wrong: list[Any] = []
    assert len(tried) > 80
    for method, target, path in tried:
        said = valid_body(method, path, mine)
        theirs = await attacker.request(method, target, **said)
        nobodys = await attacker.request(method, unknown[path], **said)
        told = (method, target, theirs.status_code, theirs.text)
        if theirs.status_code != OTHERWISE.get((method, path), 404) or theirs.text != nobodys.text:
            wrong.append((*told, nobodys.status_code, nobodys.text))
    assert wrong == []
    assert await victim.state() == before


async def test_nothing_of_another_s_gets_into_one_s_own(
    server: RunningServer, victim: TenantObjects, attacker: httpx.AsyncClient
) -> None:
    before, theirs = await victim.state(), victim.ids
    mine = await keep(server, "attacker", ContentNetwork.PRIVATE, b"mine")
    public = await keep(server, "attacker", ContentNetwork.PUBLIC, b"mine too")
    group = (await attacker.post("/v3/groups/private", json={"name": "mine"})).json()["data"]["id"]
    uploads = server.client(server.key("attacker"), "uploads.localhost")
    file = {"file": b"x"}
    for answer in (
        await attacker.put(f"/v3/groups/private/{group}/ids/{theirs['file']}"),
        await attacker.put(f"/v3/groups/private/{theirs['group']}/ids/{mine.id}"),
        await attacker.put(f"/groups/{group}/cids", json={"cids": [theirs["public_cid"]]}),
        await uploads.post("/v3/files", data={"group_id": theirs["group"]}, files=file),
        await attacker.post(
            "/pinning/pinFileToIPFS", data={"pinataOptions": f'{{"groupId":"{theirs["group"]}"}}'}, files=file
        ),
        await attacker.post("/v3/files/public/pin_by_cid", json={"cid": NOWHERE, "group_id": theirs["public_group"]}),
        await attacker.put(f"/v3/files/public/swap/{public.cid}", json={"swap_cid": theirs["cid"]}),
        await attacker.put(f"/v3/files/private/swap/{mine.cid}", json={"swap_cid": theirs["cid"]}),
        await attacker.post(f"/v3/gateways/plugins/{theirs['gateway']}", json={"plugin_id": 1}),
    ):
        assert answer.status_code in {400, 404}, (answer.request.url, answer.text)
    assert (await attacker.get(f"/v3/groups/private/{group}")).status_code == 200
    listed = (await attacker.get("/v3/files/private", params={"group": group})).json()["data"]["files"]
    assert listed == []
    assert await victim.state() == before


async def test_one_s_own_things_do_not_stand_for_each_other(server: RunningServer) -> None:
    """An object exists only under its own network, gateway and kind."""
    own = await create_objects(server, "tidy")
    second = (await own.api.post("/v3/gateways", json={"domain": "tidy-second"})).json()["data"]["id"]
    before, ids = await own.state(), own.ids
    for method, target, body in (
        ("GET", f"/v3/files/public/{ids['file']}", None),
        ("PUT", f"/v3/files/public/{ids['file']}", {"name": "x"}),
        ("DELETE", f"/v3/files/private/{ids['public_file']}", None),
        ("GET", f"/v3/groups/public/{ids['group']}", None),
        ("PUT", f"/v3/groups/private/{ids['public_group']}", {"name": "x"}),
        ("DELETE", f"/v3/groups/public/{ids['group']}", None),
        ("PUT", f"/v3/groups/private/{ids['group']}/ids/{ids['public_file']}", None),
        ("PUT", f"/v3/groups/public/{ids['public_group']}/ids/{ids['file']}", None),
        ("DELETE", f"/v3/groups/public/{ids['public_group']}/ids/{ids['file']}", None),
        ("DELETE", f"/v3/gateways/{second}/access_tokens/{ids['access_token']}", None),
        ("DELETE", f"/v3/gateways/{second}/ips/{ids['ip']}", None),
        ("DELETE", f"/v3/gateways/{ids['gateway']}/ips/{ids['host']}", None),
        ("DELETE", f"/v3/gateways/{ids['gateway']}/access_tokens/{ids['ip']}", None),
        ("DELETE", f"/v3/files/public/signature/{ids['cid']}", None),
        ("GET", f"/v3/files/private/swap/{ids['public_cid']}", None),
        ("DELETE", f"/v3/files/public/pin_by_cid/{ids['file']}", None),
        ("DELETE", f"/psa/pins/{ids['group']}", None),
        ("GET", f"/v3/webhooks/{ids['gateway']}", None),
        ("GET", f"/v3/files/private/{ids['transfer']}", None),  # not a file yet
    ):
        answer = await own.api.request(method, target, json=body)
        assert answer.status_code in {400, 404}, (method, target, answer.text)
    assert await own.state() == before


CLAIMS = {
    **dict.fromkeys(("id", "user_id", "userId", "tenant_id", "tenantId", "owner", "workspaceId"), UNKNOWN),
    "cid": STRANGER,
    "size": 1,
    "number_of_files": 9,
    "created_at": "2001-01-01T00:00:00Z",
    "plan": "paid",
    "mime_type": "text/html",
    "status": "pinned",
    "restrict": True,
    "vectorized": True,
    "is_duplicate": True,
    "revoked": True,
    "uses": -1,
    "secret": "mine",
    "quota": 10**9,
    "scopes": {"admin": True},
}


async def test_fields_of_the_server_are_ignored_in_requests(server: RunningServer) -> None:
    own = server.client(server.key("claims"), "api.localhost")
    file = await keep(server, "claims", ContentNetwork.PRIVATE, b"claimed")
    path = f"/v3/files/private/{file.id}"
    before = (await own.get(path)).json()["data"]
    after = (await own.put(path, json={**CLAIMS, "name": "new", "network": "public", "group_id": UNKNOWN})).json()
    seen = (await own.get(path)).json()["data"]
    assert after.get("data", seen) == seen
    assert {**before, "name": seen["name"], "updated_at": seen["updated_at"]} == seen
    assert (await own.get(f"/v3/files/public/{file.id}")).status_code == 404
    group = (await own.post("/v3/groups/private", json={"name": "g", **CLAIMS})).json()
    gateway = (await own.post("/v3/gateways", json={"domain": "claimed-gate", **CLAIMS})).json()
    form = {name: str(value) for name, value in CLAIMS.items()}
    uploaded = (await own.post("/v3/files", data=form, files={"file": ("a.txt", b"words")})).json()
    for made in (group, gateway, uploaded):
        told = made.get("data")
        if told is None:  # refused as a whole
            assert made["error"]["code"] == 400
            continue
        assert all(told[name] != value for name, value in CLAIMS.items() if name in told and value is not True), told
        assert told["created_at"] > "2026"
    assert uploaded["data"]["vectorized"] is False
    assert uploaded["data"]["is_duplicate"] is False


async def test_ids_cannot_be_guessed(server: RunningServer, victim: TenantObjects) -> None:
    ids = victim.ids
    names = ("file", "group", "gateway", "access_token", "ip", "host", "pin", "webhook", "transfer")
    found = [uuid.UUID(ids[name]) for name in names]
    assert all(one.version == 4 for one in found)
    assert len({one.bytes[:4] for one in found}) == len(found)
    assert len(ids["token"]) == 64
    made = (await victim.api.post("/v3/pinata/keys", json={"keyName": "k", "permissions": {"admin": True}})).json()
    assert re.fullmatch(r"[0-9a-f]{20}", made["pinata_api_key"])
    assert re.fullmatch(r"[0-9a-f]{64}", made["pinata_api_secret"])


async def test_deleted_objects_are_gone_by_their_ids(server: RunningServer) -> None:
    own = await create_objects(server, "gone")
    ids = own.ids
    for target in (
        *(f"/v3/groups/private/{ids['group']}", f"/v3/files/private/{ids['file']}", f"/v3/gateways/{ids['gateway']}"),
        *(f"/v3/files/public/pin_by_cid/{ids['pin']}", f"/v3/webhooks/{ids['webhook']}"),
    ):
        assert (await own.api.delete(target)).status_code == 200, target
        assert (await own.api.delete(target)).status_code == 404, target
    assert (await own.api.put(f"/v3/groups/private/{ids['group']}/ids/{ids['file']}")).status_code == 404
    assert (await own.api.put(f"/v3/files/private/{ids['file']}", json={"name": "x"})).status_code == 404
    assert (await own.api.post(f"/v3/gateways/{ids['gateway']}/access_tokens")).status_code == 404
    assert (await own.api.get(f"/v3/files/private/signature/{ids['cid']}")).status_code == 404


# Races


async def statuses(*requests: Any) -> list[int]:
    return sorted([answer.status_code for answer in await asyncio.gather(*requests)])


async def test_one_name_is_one_tenant_s_however_many_ask(server: RunningServer) -> None:
    clients = [server.client(server.key(f"racer-{number}"), "api.localhost") for number in range(8)]
    seen = await statuses(*(one.post("/v3/gateways", json={"domain": "only-one"}) for one in clients))
    assert seen == [200, *[409] * 7]


async def test_a_limit_is_exact_in_a_rush(server: RunningServer) -> None:
    own = server.client(server.key("many-gateways"), "api.localhost")
    await own.get("/v3/gateways")  # the first one
    asked = (own.post("/v3/gateways", json={"domain": f"rush-{number}"}) for number in range(GATEWAY_LIMIT + 5))
    seen = await statuses(*asked)
    assert seen.count(200) == GATEWAY_LIMIT - 1
    assert set(seen) - {200} <= {403, 409}
    assert (await own.get("/v3/gateways")).json()["data"]["count"] == GATEWAY_LIMIT


async def test_a_file_has_one_signature_in_a_rush(server: RunningServer) -> None:
    own = server.client(server.key("rush"), "api.localhost")
    file = await keep(server, "rush", ContentNetwork.PUBLIC, b"signed in a rush")
    date = file.created_at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{file.created_at.microsecond // 1000:03}Z"
    body = {"signature": sign_typed(account(), file.cid, date), "address": account().address}
    target = f"/v3/files/public/signature/{file.cid}"
    assert await statuses(*(own.post(target, json=body) for _ in range(8))) == [200, *[409] * 7]


async def test_a_key_for_five_is_for_five_in_a_rush(server: RunningServer) -> None:
    own = server.client(server.key("counted"), "api.localhost")
    asked = {"keyName": "five", "maxUses": 5, "permissions": {"admin": True}}
    token = (await own.post("/v3/pinata/keys", json=asked)).json()["JWT"]
    counted = server.client(token, "api.localhost")
    seen = await statuses(*(counted.get("/v3/groups/public") for _ in range(20)))
    assert seen.count(200) == 5
    assert set(seen) == {200, 401}


async def test_deletion_during_use_breaks_nothing(server: RunningServer) -> None:
    own = server.client(server.key("deleting"), "api.localhost")
    for number in range(5):
        file = await keep(server, "deleting", ContentNetwork.PUBLIC, b"file %d" % number)
        group = (await own.post("/v3/groups/public", json={"name": "g"})).json()["data"]["id"]
        other = await keep(server, "deleting", ContentNetwork.PUBLIC, b"other %d" % number)
        path, inside = f"/v3/files/public/{file.id}", f"/v3/groups/public/{group}/ids/{file.id}"
        seen = await statuses(
            *(own.put(inside), own.delete(path), own.put(inside), own.delete(f"/v3/groups/public/{group}")),
            *(own.put(path, json={"name": "x"}), own.delete(inside), own.delete(path)),
            own.put(f"/v3/files/public/swap/{other.cid}", json={"swap_cid": file.cid}),
        )
        assert set(seen) <= {200, 404}, seen
        assert (await own.get(path)).status_code == 404
        assert (await own.get("/v3/files/public", params={"group": group})).status_code in {200, 404}
