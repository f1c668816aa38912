"""Domains of storage gateways, with a real name server."""

from typing import Any

import httpx2 as httpx

from roost.identity.caller import Plan
from tests.conformance.name_server import NameServer
from tests.support.server import RunningServer

ON_SERVICES = {"test_a_site_at_a_domain_of_its_own"}
YEAR = "max-age=31536000"  # without the names below a domain that is not the server's


async def keep_site(api: httpx.AsyncClient, text: str) -> str:
    """Keep a folder with an index page, a 404 page and a script; return its CID."""
    pages = {"index.html": f"<h1>{text}</h1>", "404.html": "lost", "app.js": f"// {text}"}
    files = [("file", (f"site/{name}", page.encode())) for name, page in pages.items()]
    answer = await api.post("/v3/files", data={"network": "public", "name": "site"}, files=files)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]["cid"]


async def add(api: httpx.AsyncClient, names: NameServer, domain: str, **body: Any) -> tuple[str, dict[str, Any]]:
    """Register a domain of the first gateway and set its TXT record; return its path and record."""
    gateway = (await api.get("/v3/gateways")).json()["data"]["rows"][0]
    path = f"/v3/gateways/{gateway['id']}/custom_domain"
    answer = await api.post(path, json={"domain": domain, **body})
    assert answer.status_code == 200, answer.text
    made = answer.json()["data"]
    name, value = made["reason"].removeprefix("Add the TXT record ").split(" with the value ")
    names.set_texts(name, [value])
    return f"{path}/{made['custom_domain_id']}", made


async def test_a_site_at_a_domain_of_its_own(
    server: RunningServer, api: httpx.AsyncClient, tenant: str, names: NameServer
) -> None:
    first, second = await keep_site(api, f"{tenant} one"), await keep_site(api, f"{tenant} two")
    path, made = await add(api, names, "Site.example.com", cid=first)
    assert (made["domain"], made["cid"], made["domain_validation_status"]) == ("site.example.com", first, "pending")
    visitor = server.client(host="site.example.com")
    unknown = await visitor.get("/")
    assert (unknown.status_code, unknown.headers["strict-transport-security"]) == (404, YEAR)
    verified = (await api.post(f"{path}/verify")).json()["data"]
    assert (verified["domain_validation_status"], verified["ssl_validation_status"]) == ("active", "active")
    page = await visitor.get("/", headers={"Accept": "text/html"})
    assert (page.status_code, "one" in page.text, page.headers["cache-control"]) == (200, True, "public, no-cache")
    assert page.headers["strict-transport-security"] == YEAR
    assert "sandbox" not in page.headers.get("content-security-policy", "")
    assert (await visitor.get("/app.js", headers={"Range": "bytes=0-1"})).text == "//"
    lost = await visitor.get("/nowhere", headers={"Accept": "text/html"})
    assert (lost.status_code, lost.text) == (404, "lost")
    assert (await api.put(path, json={"cid": second})).json()["data"]["cid"] == second
    assert "two" in (await visitor.get("/", headers={"Accept": "text/html"})).text
    assert (await api.get("/v3/gateways")).json()["data"]["rows"][0]["custom_domains"][0]["cid"] == second
    unknown = await api.put(path, json={"cid": f"{second[:-6]}aaaaaa"})
    assert (unknown.status_code, "upload or pin it first" in unknown.headers["x-error-detail"]) == (400, True)
    assert "two" in (await visitor.get("/", headers={"Accept": "text/html"})).text
    await api.put(path, json={"cid": None})
    assert (await visitor.get(f"/ipfs/{first}/app.js")).status_code == 200
    assert "sandbox" in (await visitor.get(f"/ipfs/{first}/")).headers["content-security-policy"]
    for platform in ("/v3/files", "/v0/agents", "/metrics"):
        refused = await visitor.get(platform)
        assert (refused.status_code, refused.headers["strict-transport-security"]) == (404, YEAR)
    assert (await api.delete(path)).json() == {"data": None}
    assert (await visitor.get(f"/ipfs/{first}/app.js")).status_code == 404


async def test_a_deleted_gateway_leaves_no_domain(
    server: RunningServer, api: httpx.AsyncClient, names: NameServer
) -> None:
    path, _ = await add(api, names, "gone.example.com")
    assert (await api.post(f"{path}/verify")).status_code == 200
    visitor = server.client(host="gone.example.com")
    assert "ERR_ID" in (await visitor.get("/")).text
    await api.delete(path.partition("/custom_domain")[0])
    assert (await visitor.get("/")).json() == {"error": "Not found"}


async def test_refused_domains_have_a_reason(
    server: RunningServer, api: httpx.AsyncClient, tenant: str, names: NameServer
) -> None:
    path, _ = await add(api, names, "refused.example.com")
    folder = path.rpartition("/")[0]
    other = server.client(server.key(f"{tenant}-2"), "api.localhost")
    for method, where, body, status in (
        ("POST", folder, {"domain": "localhost"}, 400),
        ("POST", folder, {"domain": "b.example.com", "cid": "bafkqaaa"}, 400),
        ("POST", folder, {"domain": "b.example.com", "cid": "nothing"}, 400),
        ("PUT", f"{folder}/unknown", {"cid": None}, 404),
        ("DELETE", f"{folder}/unknown", None, 404),
    ):
        answer = await api.request(method, where, json=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (status, status), answer.text
        assert (await other.request(method, where, json=body)).status_code in {400, 404}
    assert (await other.post(f"{path}/verify")).status_code == 404
    free = server.client(server.key(f"{tenant}-free", Plan.FREE), "api.localhost")
    gateway = (await free.get("/v3/gateways")).json()["data"]["rows"][0]
    answer = await free.post(f"/v3/gateways/{gateway['id']}/custom_domain", json={"domain": "c.example.com"})
    assert answer.status_code == 403
