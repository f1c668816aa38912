"""A tenant with one object of each kind of the storage API, for tests of foreign access."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2 as httpx

from roost.storage.content.model import ContentNetwork
from roost.storage.files.signatures.model import format_milliseconds
from roost.storage.payments.instructions.model import BUILT_IN
from tests.contract.storage import keep
from tests.storage.files.signatures.test_ethereum import account, sign_typed
from tests.support.server import RunningServer

QUEUE = "/v3/files/public/pin_by_cid"
LISTS = (
    *("/v3/files/public", "/v3/files/private", "/v3/groups/public", "/v3/groups/private", "/v3/gateways"),
    *(QUEUE, "/psa/pins", "/v3/pinata/keys", "/v3/webhooks", "/data/pinList", "/groups"),
    "/v3/x402/payment_instructions",
)
NOWHERE = "bafkreih5aznjvttude6c3wbvqeebb6rlx5wkbzyppv7garjiubll2ceym4"


@dataclass
class TenantObjects:
    """`ids` are the path parameters of the objects by kind, `state` the requests that show each object."""

    api: httpx.AsyncClient
    uploads: httpx.AsyncClient
    ids: dict[str, str] = field(default_factory=dict[str, str])

    async def state(self) -> Mapping[str, Any]:
        """Return everything that the owner sees of the objects."""
        paths = [*LISTS, *(path.format(**self.ids) for path in _DETAILS)]
        seen: dict[str, Any] = {}
        for path in paths:
            answer = await self.api.get(path, params={"limit": "100"} if path in LISTS else None)
            assert answer.status_code == 200, (path, answer.text)
            seen[path] = [job["id"] for job in answer.json()["data"]["jobs"]] if path == QUEUE else answer.json()
        transfer = await self.uploads.head(f"/v3/files/{self.ids['transfer']}/{self.ids['token']}")
        return seen | {"transfer": (transfer.status_code, transfer.headers["upload-offset"])}


_DETAILS = (
    *("/v3/files/private/{file}", "/v3/files/public/{public_file}", "/v3/groups/private/{group}"),
    *("/v3/gateways/{gateway}", "/v3/gateways/{gateway}/access_tokens", "/v3/gateways/{gateway}/ips"),
    *("/v3/gateways/{gateway}/custom_domain", "/v3/gateways/{gateway}/hosts", "/v3/gateways/plugins/{gateway}"),
    *("/v3/files/public/swap/{public_cid}", "/v3/files/private/signature/{cid}"),
    "/v3/x402/payment_instructions/{payment_instruction}/cids",
    *("/v3/vectorize/files/{file}", "/v3/vectorize/groups/{group}/files", "/v3/vectorize/groups/{group}/agents"),
)


async def create_objects(server: RunningServer, tenant: str) -> TenantObjects:
    """Create all objects through the API."""
    key = server.key(tenant)
    objects = TenantObjects(server.client(key, "api.localhost"), server.client(key, "uploads.localhost"))

    async def post(path: str, method: str = "POST", **body: Any) -> Any:
        answer = await objects.api.request(method, path, json=body)
        assert answer.status_code == 200, (path, answer.text)
        return answer.json().get("data", answer.json())

    private = await keep(server, tenant, ContentNetwork.PRIVATE, f"private of {tenant}".encode())
    public = await keep(server, tenant, ContentNetwork.PUBLIC, f"public of {tenant}".encode())
    other = await keep(server, tenant, ContentNetwork.PUBLIC, f"other of {tenant}".encode())
    ids = {"file": private.id, "cid": private.cid, "public_file": public.id, "public_cid": public.cid}
    ids["group"] = (await post("/v3/groups/private", name="group"))["id"]
    ids["public_group"] = (await post("/v3/groups/public", name="public group"))["id"]
    await post(f"/v3/groups/private/{ids['group']}/ids/{ids['file']}", "PUT")
    assert (await post(f"/v3/vectorize/files/{ids['file']}"))["state"] == "indexed"
    ids["gateway"] = (await objects.api.get("/v3/gateways")).json()["data"]["rows"][0]["id"]
    gateway = f"/v3/gateways/{ids['gateway']}"
    ids["access_token"] = (await post(f"{gateway}/access_tokens"))["id"]
    ids["ip"] = (await post(f"{gateway}/ips", ip="192.0.2.7"))["id"]
    ids["host"] = (await post(f"{gateway}/hosts", host="app.example"))["id"]
    ids["domain"] = (await post(f"{gateway}/custom_domain", domain=f"{tenant}.example.com"))["custom_domain_id"]
    await post(f"/v3/gateways/plugins/{ids['gateway']}", plugin_id=2)
    await post(f"/v3/files/public/swap/{public.cid}", "PUT", swap_cid=other.cid)
    signature = sign_typed(account(), private.cid, format_milliseconds(private.created_at))
    await post(f"/v3/files/private/signature/{private.cid}", signature=signature, address=account().address)
    ids["pin"] = (await post(QUEUE, cid=NOWHERE, name="pin"))["id"]
    made = await objects.api.post("/v3/pinata/keys", json={"keyName": "second", "permissions": {"admin": True}})
    ids["key"] = made.json()["pinata_api_key"]
    ids["webhook"] = (await post("/v3/webhooks", url="https://hooks.example/x", enabled=False))["id"]
    requirement = {"asset": BUILT_IN[0].address, "pay_to": account().address, "network": "base", "amount": "1"}
    instruction = await post("/v3/x402/payment_instructions", name="paid", payment_requirements=[requirement])
    ids["payment_instruction"] = instruction["id"]
    await post(f"/v3/x402/payment_instructions/{instruction['id']}/cids/{private.cid}", "PUT")
    ids["transfer"], ids["token"] = await _begun(objects.uploads)
    objects.ids = ids
    return objects


async def _begun(uploads: httpx.AsyncClient) -> list[str]:
    name = base64.b64encode(b"part.bin").decode()
    headers = {"Upload-Length": "100", "Upload-Metadata": f"filename {name}", "Tus-Resumable": "1.0.0"}
    begun = await uploads.post("/v3/files", headers=headers)
    file_id, token = begun.headers["location"].split("/")[-2:]
    part = {"Upload-Offset": "0", "Content-Type": "application/offset+octet-stream", "Tus-Resumable": "1.0.0"}
    sent = await uploads.patch(f"/v3/files/{file_id}/{token}", content=bytes(10), headers=part)
    assert sent.status_code == 204
    return [file_id, token]
