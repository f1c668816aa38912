"""What a creation answers is what the next request shows: every field, in both APIs."""

from collections.abc import Mapping
from typing import Any

import httpx2 as httpx
import pytest

from roost.http.server.application import create_bare_application
from roost.storage.payments.instructions.model import BUILT_IN
from tests.contract.test_hub import skill_file
from tests.storage.files.signatures.test_ethereum import account
from tests.support.server import RunningServer

pytestmark = pytest.mark.container
CID = "bafkreih5aznjvttude6c3wbvqeebb6rlx5wkbzyppv7garjiubll2ceym4"
CHANGING = {"status", "statusReason"}
"""Fields of an agent that its start changes meanwhile."""
IN_DETAIL = {"gatewayToken", "lifecycleJson"}
"""Fields of an agent that lists leave out."""
OF_UPLOADS = {"is_duplicate", "vectorized"}
"""Fields of an upload that say what it did; `GET /v3/vectorize/files/{id}` shows the state of vectors."""
ONCE = {"key", "JWT", "pinata_api_secret", "secret", "token"}
"""Credentials, which are shown once."""
ELSEWHERE = {
    "/v0/agents/import": "tests/contract/test_archives.py",
    "/v0/templates": "tests/contract/test_templates.py",
    "/v0/agents/{agentId}/sign-in-link": "a link, which nothing shows again",
    "/v0/session/links": "a link, which nothing shows again",
}
AGENTS = {
    "/v0/agents",
    "/v0/secrets",
    "/v0/skills",
    "/v0/skills/{skillId}/versions",
    "/v0/agents/{agentId}/tasks",
    "/v0/agents/{agentId}/domains",
}
TASK: dict[str, Any] = {"name": "report", "schedule": "0 9 * * 1-5 Europe/Berlin", "payload": "Write the report."}


def check_shown(created: Mapping[str, Any], shown: Mapping[str, Any], *allowed: str) -> None:
    """Compare all fields of a creation with those that are shown, except credentials and `allowed`."""
    missing = created.keys() - shown.keys() - ONCE - set(allowed)
    differing = {
        name: (created[name], shown[name])
        for name in created.keys() & shown.keys() - set(allowed)
        if created[name] != shown[name]
    }
    assert not missing, f"a creation has fields that are not shown later: {missing}"
    assert not differing, f"a creation and the next request differ: {differing}"


async def send(client: httpx.AsyncClient, path: str, status: int = 201, method: str = "POST", **body: Any) -> Any:
    content: dict[str, Any] = body if "files" in body else {"json": body}
    answer = await client.request(method, path, **content)
    assert answer.status_code == status, (path, answer.text)
    return answer.json()


async def show(client: httpx.AsyncClient, path: str) -> Any:
    return await send(client, path, 200, "GET")


def find(records: list[dict[str, Any]], name: str, value: str) -> dict[str, Any]:
    (found,) = [one for one in records if one[name] == value]
    return found


def test_each_creation_is_here() -> None:
    paths = create_bare_application().openapi()["paths"]
    created = {path for path, methods in paths.items() for one in methods.values() if "201" in one["responses"]}
    assert created == AGENTS | ELSEWHERE.keys()


async def test_agents_and_what_belongs_to_them(server: RunningServer, tenant: str) -> None:
    api = server.client(server.key(tenant))
    agent = (await send(api, "/v0/agents", name="Ada", description="d", vibe="v", emoji="\N{OWL}"))["agent"]
    path = f"/v0/agents/{agent['agentId']}"
    check_shown(agent, (await show(api, path))["agent"], *CHANGING)
    check_shown(
        agent, find((await show(api, "/v0/agents"))["agents"], "agentId", agent["agentId"]), *CHANGING, *IN_DETAIL
    )
    task = (await send(api, f"{path}/tasks", **TASK))["task"]
    check_shown(task, (await show(api, f"{path}/tasks/{task['id']}"))["task"])
    check_shown(task, find((await show(api, f"{path}/tasks"))["tasks"], "id", task["id"]))
    domain = (await send(api, f"{path}/domains", subdomain="made-here", targetPort=8080, protected=True))["domain"]
    check_shown(domain, find((await show(api, f"{path}/domains"))["domains"], "id", domain["id"]))


async def test_secrets_and_skills(server: RunningServer, tenant: str) -> None:
    api = server.client(server.key(tenant))
    secret = (await send(api, "/v0/secrets", name="NAME", value="x" * 20))["secret"]
    check_shown(secret, find((await show(api, "/v0/secrets"))["secrets"], "id", secret["id"]))
    files = [("file", ("made/SKILL.md", skill_file("made")))]
    skill = (await send(api, "/v0/skills", files=files, data={"version": "1.0.0"}))["skill"]
    check_shown(skill, find((await show(api, "/v0/skills"))["skills"], "skillId", skill["skillId"]))
    files = [("file", ("made/SKILL.md", skill_file("made", "More.")))]
    again = (await send(api, f"/v0/skills/{skill['skillId']}/versions", files=files, data={"version": "1.1.0"}))[
        "skill"
    ]
    check_shown(again, find((await show(api, "/v0/skills"))["skills"], "skillId", skill["skillId"]))
    versions = (await show(api, f"/v0/skills/{skill['skillId']}/versions"))["versions"]
    newest = find(versions, "version", "1.1.0")
    assert {name: again[name] for name in newest.keys() & again.keys()} == {
        name: newest[name] for name in newest.keys() & again.keys()
    }


async def test_the_storage_api(server: RunningServer, tenant: str) -> None:
    """Its creations answer 200."""
    api = server.client(server.key(tenant), "api.localhost")
    requirement = {"asset": BUILT_IN[0].address, "pay_to": account().address, "network": "base", "amount": "1"}
    for path, body, name in (
        ("/v3/groups/private", {"name": "mine"}, "id"),
        ("/v3/groups/public", {"name": "all", "is_public": True}, "id"),
        ("/v3/webhooks", {"url": "https://hooks.example/x", "enabled": False}, "id"),
        ("/v3/x402/payment_instructions", {"name": "paid", "payment_requirements": [requirement]}, "id"),
    ):
        made = (await send(api, path, 200, **body))["data"]
        check_shown(made, (await show(api, f"{path}/{made[name]}"))["data"])
    gateway = (await show(api, "/v3/gateways"))["data"]["rows"][0]
    check_shown(gateway, (await show(api, f"/v3/gateways/{gateway['id']}"))["data"])
    for kind, body in (("ips", {"ip": "192.0.2.7"}), ("hosts", {"host": "app.example"})):
        made = (await send(api, f"/v3/gateways/{gateway['id']}/{kind}", 200, **body))["data"]
        assert made in (await show(api, f"/v3/gateways/{gateway['id']}/{kind}"))["data"]
    made = (await send(api, f"/v3/gateways/{gateway['id']}/custom_domain", 200, domain="made.example.com"))["data"]
    listed = (await show(api, f"/v3/gateways/{gateway['id']}/custom_domain"))["data"]
    check_shown(made, find(listed, "custom_domain_id", made["custom_domain_id"]))
    for network in ("public", "private"):
        for fields in ({"file": b"1"}, {"file": ("folder/a.txt", b"2")}):
            answer = await api.post("/v3/files", files=fields, data={"network": network, "keyvalues": '{"a": "b"}'})
            file = answer.json()["data"]
            check_shown(file, (await show(api, f"/v3/files/{network}/{file['id']}"))["data"], *OF_UPLOADS)
    pin = await send(api, "/psa/pins", 202, cid=CID, name="pin", meta={"a": "b"}, origins=["/dns4/a.example/tcp/1"])
    check_shown(pin, await show(api, f"/psa/pins/{pin['requestid']}"), *CHANGING, "info")
    job = (await send(api, "/v3/files/public/pin_by_cid", 200, cid=CID, name="job"))["data"]
    jobs = (await show(api, "/v3/files/public/pin_by_cid"))["data"]["jobs"]
    check_shown(job, find(jobs, "id", job["id"]), *CHANGING)
