"""Skills of agents: attached, delivered, updated and detached, in real containers with the fake engine (B2, B6, F4)."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from roost.core.machine.unix_socket import Stream
from roost.warden_client.errors import ContainerNotRunning
from tests.agents.lifecycle.workflows.lifecycle_env import until
from tests.contract.git_client import GitClient
from tests.contract.test_skills import DANGER, UNKNOWN, folder, register, skill_file, status_and_body
from tests.contract.test_snapshots import reset, shell, sync
from tests.support.server import RunningServer, running

LIST = "find skills -type f ! -name .roost-skill.json | sort"
NOTES = ["skills/notes/SKILL.md", "skills/notes/empty", "skills/notes/scripts/run.sh"]


@pytest.fixture
async def agent(api: httpx.AsyncClient) -> AsyncIterator[dict[str, Any]]:
    made = await create(api)
    yield made
    assert (await api.delete(f"/v0/agents/{made['agentId']}")).status_code == 200


@pytest.fixture
def api(server: RunningServer, tenant: str) -> httpx.AsyncClient:
    return server.client(server.key(tenant))


async def create(api: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    answer = await api.post("/v0/agents", json={"name": "a", **body})
    assert answer.status_code == 201, answer.text
    return answer.json()["agent"]


def path_of(agent: dict[str, Any], rest: str = "") -> str:
    return f"/v0/agents/{agent['agentId']}/skills{rest}"


async def attach(
    client: httpx.AsyncClient, agent: dict[str, Any], *skills: dict[str, Any], **more: Any
) -> httpx.Response:
    cids = [skill["skillCid"] for skill in skills]
    return await client.post(path_of(agent), json={"skillCids": cids, **more})


async def attached(api: httpx.AsyncClient, agent: dict[str, Any]) -> list[dict[str, Any]]:
    answer = await api.get(path_of(agent))
    assert answer.status_code == 200, answer.text
    return answer.json()["skills"]


async def files(server: RunningServer, agent: dict[str, Any], command: str = LIST) -> list[str]:
    return (await shell(server.agent_client(agent), f"{command} 2>/dev/null || :")).splitlines()


async def test_a_running_agent_has_a_skill_at_once(
    server: RunningServer, api: httpx.AsyncClient, agent: dict[str, Any]
) -> None:
    skill = await register(api, folder())
    answer = await attach(api, agent, skill)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert (body["success"], body["attached"]) == (True, 1)
    (record,) = body["skills"]
    assert {name: record[name] for name in ("agentId", "skillId", "skillCid", "name", "version")} == {
        **{name: skill[name] for name in ("skillId", "skillCid", "name", "version")},
        "agentId": agent["agentId"],
    }
    assert (record["synced"], record["loaded"], record["verdict"]) == (True, True, "clean")
    assert record["missing"] == {"secrets": [], "programs": [], "hosts": []}
    assert await files(server, agent) == NOTES
    assert await files(server, agent, "skills/notes/scripts/run.sh") == ["notes"]
    assert (await attach(server.agent_client(agent), agent, skill)).json()["attached"] == 0
    assert await attached(api, agent) == [record]
    detail = (await api.get(f"/v0/agents/{agent['agentId']}")).json()
    assert detail["skills"] == [{name: record[name] for name in record if name not in {"loaded", "fault", "missing"}}]
    used = await api.delete(f"/v0/skills/{skill['skillCid']}")
    assert status_and_body(used) == (409, {"error": f"Skill is attached to an agent: {agent['agentId']}"})
    assert (await server.agent_client(agent).delete(f"/v0/skills/{skill['skillId']}")).status_code == 200
    assert await files(server, agent, "ls -A skills") == []
    assert await attached(api, agent) == []
    assert status_and_body(await api.delete(path_of(agent, f"/{skill['skillId']}"))) == UNKNOWN
    assert (await api.delete(f"/v0/skills/{skill['skillCid']}")).status_code == 200


async def test_updates_are_listed_and_applied(
    server: RunningServer, api: httpx.AsyncClient, agent: dict[str, Any]
) -> None:
    first = await register(api, folder())
    await attach(api, agent, first)
    assert (await api.get(path_of(agent, "/updates"))).json() == {"updates": []}
    second = await register(api, {"SKILL.md": skill_file(text="Better.\n"), "new": b"new"})
    third = await register(api, folder(text="Worse.\n"), version="0.9.0")
    (update,) = (await api.get(path_of(agent, "/updates"))).json()["updates"]
    assert (update["version"], update["latestVersion"], update["latestCid"]) == ("1.0.0", "1.0.1", second["skillCid"])
    other = await attach(api, agent, second)
    assert status_and_body(other) == (409, {"error": "Skill version conflict: 1.0.0 of notes is attached"})
    by_id = await api.post(path_of(agent), json={"skillCids": [first["skillId"]]})
    assert (by_id.status_code, by_id.json()["attached"]) == (200, 0)
    path = path_of(agent, f"/{first['skillId']}/update")
    older = await api.post(path, json={"version": "0.9.0"})
    assert status_and_body(older) == (409, {"error": "Skill version conflict: 0.9.0 is older than 1.0.0"})
    assert (await api.post(path, json={"skillCid": third["skillCid"]})).status_code == 409
    unknown = await api.post(path, json={"version": "9.9.9"})
    assert status_and_body(unknown) == (404, {"error": "Skill version not found"})
    await shell(server.agent_client(agent), "echo own > skills/notes/own")
    updated = await api.post(path)
    assert updated.status_code == 200, updated.text
    assert (updated.json()["previousVersion"], updated.json()["skill"]["version"]) == ("1.0.0", "1.0.1")
    assert await files(server, agent) == ["skills/notes/SKILL.md", "skills/notes/new", "skills/notes/own"]
    assert (await api.post(path, json={"version": "1.0.1"})).status_code == 200
    assert (await api.post(path)).json()["previousVersion"] == "1.0.1"
    assert (await api.delete(path_of(agent, f"/{first['skillId']}"))).status_code == 200
    assert await files(server, agent) == ["skills/notes/own"]


async def test_limits_and_conflicts(
    server: RunningServer, api: httpx.AsyncClient, agent: dict[str, Any], tenant: str
) -> None:
    skills = [await register(api, folder(f"n{number}")) for number in range(11)]
    assert (await attach(api, agent, *skills)).status_code == 400
    assert (await attach(api, agent, *skills[:9])).json()["attached"] == 9
    answers = await asyncio.gather(*(attach(api, agent, skill) for skill in (*skills[9:], *skills[9:])))
    assert {answer.status_code for answer in answers} == {200, 400}
    assert {answer.text for answer in answers if answer.status_code == 400} == {
        '{"error":"An agent can have at most 10 skills"}'
    }
    assert len(await attached(api, agent)) == 10
    assert len(await files(server, agent, "ls skills")) == 10
    twin = await register(api, folder("n0", "twin"), slug="@ada/n0")
    await api.delete(path_of(agent, f"/{skills[8]['skillId']}"))
    assert (await attach(api, agent, twin)).status_code == 409
    for body in ({}, {"skillCids": []}, {"skillCids": "x"}, {"skillCids": [7]}, {"skillCids": ["x"], "acknowledge": 1}):
        assert (await api.post(path_of(agent), json=body)).status_code == 400, body
    stranger = server.client(server.key(f"{tenant}-other"))
    foreign = await register(stranger, folder("foreign"))
    for reference in (foreign["skillCid"], foreign["skillId"], "@ada/none", "x"):
        answer = await api.post(path_of(agent), json={"skillCids": [reference]})
        assert status_and_body(answer) == UNKNOWN
        made = await api.post("/v0/agents", json={"name": "b", "skillCids": [reference]})
        assert status_and_body(made) == UNKNOWN
    assert (await stranger.get(path_of(agent))).status_code == 401
    assert len((await api.get("/v0/agents")).json()["agents"]) == 1


async def test_a_dangerous_skill_needs_an_acknowledgement(
    server: RunningServer, api: httpx.AsyncClient, agent: dict[str, Any]
) -> None:
    skill = await register(api, folder(text=DANGER))
    refused = await attach(api, agent, skill)
    assert refused.status_code == 409
    assert "SKILL.md:" in refused.json()["error"]
    assert "acknowledge" in refused.json()["error"]
    body = {"name": "b", "skillCids": [skill["skillCid"]]}
    assert (await api.post("/v0/agents", json=body)).status_code == 409
    token = (await server.agent_client(agent).post("/v0/platform/token")).json()["token"]
    platform = server.client(token)
    assert (await attach(platform, agent, skill, acknowledge=True)).status_code == 403
    assert await attached(api, agent) == []
    assert (await attach(api, agent, skill, acknowledge=True)).json()["attached"] == 1
    harmless = await register(api, folder("other"))
    assert (await attach(platform, agent, harmless)).json()["attached"] == 1
    assert (await platform.get("/v0/skills")).status_code == 200
    assert (await platform.delete(f"/v0/skills/{skill['skillCid']}")).status_code == 403


async def test_needs_of_a_skill_are_listed(
    server: RunningServer, api: httpx.AsyncClient, agent: dict[str, Any]
) -> None:
    wants = '{"openclaw": {"requires": {"env": ["API_KEY", "OTHER"], "bins": ["sh", "no-such-program"]}}}'
    skill = await register(api, {"SKILL.md": skill_file(metadata=wants)})
    secret = (await api.post("/v0/secrets", json={"name": "OTHER", "value": "x"})).json()["secret"]
    await api.post(f"/v0/agents/{agent['agentId']}/secrets", json={"secretIds": [secret["id"]]})
    (record,) = (await attach(api, agent, skill)).json()["skills"]
    assert record["missing"] == {"secrets": ["API_KEY"], "programs": ["no-such-program"], "hosts": []}


async def test_changed_files_come_back(server: RunningServer, api: httpx.AsyncClient, agent: dict[str, Any]) -> None:
    client = server.agent_client(agent)
    skill = await register(api, folder())
    await shell(client, "mkdir -p skills/own; echo mine > skills/own/SKILL.md")
    before = (await sync(client))["snapshotCid"]
    await attach(api, agent, skill)
    after = (await sync(client))["snapshotCid"]
    await reset(client, before)
    await until(lambda: _has(server, agent, [*NOTES, "skills/own/SKILL.md"]))
    await shell(
        client, "echo bad > skills/notes/SKILL.md; rm skills/notes/empty; chmod 644 skills/notes/scripts/run.sh"
    )
    assert (await api.post(f"/v0/agents/{agent['agentId']}/restart")).status_code == 200
    assert await files(server, agent) == [*NOTES, "skills/own/SKILL.md"]
    assert await files(server, agent, "tail -n1 skills/notes/SKILL.md; skills/notes/scripts/run.sh") == [
        "Take notes.",
        "notes",
    ]
    await api.delete(path_of(agent, f"/{skill['skillId']}"))
    await reset(client, after)
    await until(lambda: _has(server, agent, ["skills/own/SKILL.md"]))


async def _has(server: RunningServer, agent: dict[str, Any], expected: list[str]) -> bool:
    return await files(server, agent) == expected


async def test_files_come_back_after_a_push(
    server: RunningServer, api: httpx.AsyncClient, agent: dict[str, Any], tmp_path: Path
) -> None:
    await attach(api, agent, await register(api, folder()))
    git = GitClient(server, agent, tmp_path)
    clone = await git.clone("clone")
    (clone / "skills/notes/SKILL.md").write_text("pushed")
    (clone / "skills/notes/scripts/run.sh").unlink()
    await git.run("commit", "-qam", "change", cwd="clone")
    await git.run("push", "-q", "origin", "HEAD:main", cwd="clone")
    await until(lambda: _has(server, agent, NOTES))
    assert await files(server, agent, "tail -n1 skills/notes/SKILL.md; skills/notes/scripts/run.sh") == [
        "Take notes.",
        "notes",
    ]


async def test_hostile_folders_are_no_obstacle(
    server: RunningServer, api: httpx.AsyncClient, agent: dict[str, Any]
) -> None:
    client = server.agent_client(agent)
    skill = await register(api, folder())
    escaping = json.dumps({"agent": agent["agentId"], "cid": "", "files": ["../../keep"]})
    for command in (
        "rm -rf skills; echo file > skills",
        "rm -rf skills; ln -s /etc skills",
        "rm -rf skills; mkdir -p skills/notes/SKILL.md/deep",
        "rm -rf skills; mkdir -p skills; ln -s /etc skills/notes",
        "rm -rf skills; ln -s /etc .roost-staging",
        "rm -rf .roost-staging; mkdir -p .roost-staging/x; echo x > .roost-staging/y",
        "mkdir -p skills/x; echo '{\"agent\": 7}' > skills/x/.roost-skill.json; mkfifo skills/y",
        f"mkdir -p skills/z; echo keep > keep; echo '{escaping}' > skills/z/.roost-skill.json",
    ):
        await shell(client, command)
        (record,) = (await attach(api, agent, skill)).json()["skills"]
        assert record["synced"], command
        assert (await files(server, agent, "tail -n1 skills/notes/SKILL.md")) == ["Take notes."], command
        assert (await api.delete(path_of(agent, f"/{skill['skillId']}"))).status_code == 200
    assert await files(server, agent, "cat keep; ls -d .roost-staging") == ["keep"]


async def test_a_new_agent_and_a_fork_have_skills(server: RunningServer, api: httpx.AsyncClient) -> None:
    skill, other = await register(api, folder()), await register(api, folder("other"))
    origin = await create(api, skillCids=[skill["skillCid"]])
    assert await files(server, origin) == NOTES
    assert (await attached(api, origin))[0]["loaded"] is True
    cid = (await sync(server.agent_client(origin)))["snapshotCid"]
    fork = await create(api, snapshotCid=cid, skillCids=[other["skillId"]])
    assert [one["name"] for one in await attached(api, fork)] == ["notes", "other"]
    assert len(await files(server, fork)) == 6
    for made in (origin, fork):
        assert (await api.delete(f"/v0/agents/{made['agentId']}")).status_code == 200
    assert (await api.delete(f"/v0/skills/{skill['skillId']}")).status_code == 200


async def test_an_archive_names_the_skills(server: RunningServer, api: httpx.AsyncClient, tenant: str) -> None:
    skill = await register(api, folder())
    origin = await create(api, skillCids=[skill["skillCid"]])
    archive = (await api.get(f"/v0/agents/{origin['agentId']}/export")).content
    same = (await api.post("/v0/agents/import", content=archive)).json()
    assert same["missingSkills"] == []
    assert [one["skillCid"] for one in await attached(api, same["agent"])] == [skill["skillCid"]]
    stranger = server.client(server.key(f"{tenant}-other"))
    theirs = (await stranger.post("/v0/agents/import", content=archive)).json()
    assert theirs["missingSkills"] == [{"name": "notes", "cid": skill["skillCid"]}]
    assert await attached(stranger, theirs["agent"]) == []
    assert await files(server, theirs["agent"]) == NOTES
    for owner, made in ((api, origin), (api, same["agent"]), (stranger, theirs["agent"])):
        assert (await owner.delete(f"/v0/agents/{made['agentId']}")).status_code == 200


async def test_a_skill_wants_a_host_that_is_refused(tmp_path: Path) -> None:
    wants = '{"roost": {"hosts": ["api.open.example", "API.shut.example", "*.shut.example", "no host"]}}'
    async with running(tmp_path / "data", ROOST_EGRESS_DENY_HOSTS="shut.example") as server:
        api = server.client(server.key())
        skill = await register(api, {"SKILL.md": skill_file(metadata=wants)})
        assert skill["wants"]["hosts"] == ["api.open.example", "api.shut.example", "*.shut.example"]
        assert any("no host" in warning for warning in skill["warnings"])
        (record,) = (await attach(api, await create(api), skill)).json()["skills"]
        assert record["missing"]["hosts"] == ["api.shut.example", "*.shut.example"]


async def test_a_stopped_agent_has_them_at_its_next_start(tmp_path: Path) -> None:
    async with running(tmp_path / "data") as server:
        api = server.client(server.key())
        skill = await register(api, folder())
        agent = await create(api)
        await server.roost.drivers.runtime.stop(agent["agentId"])
        (record,) = (await attach(api, agent, skill)).json()["skills"]
        assert (record["synced"], record["loaded"]) == (False, None)
    async with running(tmp_path / "data") as server:
        api = server.client(server.key())
        await until(lambda: _is_loaded(api, agent))
        assert await files(server, agent) == NOTES


async def test_a_delivery_whose_connection_breaks_is_repeated(
    server: RunningServer, api: httpx.AsyncClient, agent: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container that runs is not taken for one that is gone, which would get its skills at its next start only."""
    skill = await register(api, folder())
    containers = server.roost.agents.registry.runtimes.runtime
    connect, broken = containers.connect, list[str]()

    async def break_first(agent_id: str) -> Stream:
        if not broken:
            broken.append(agent_id)
            raise ContainerNotRunning
        return await connect(agent_id)

    monkeypatch.setattr(containers, "connect", break_first)
    await attach(api, agent, skill)
    await until(lambda: _is_loaded(api, agent))
    assert broken
    assert await files(server, agent) == NOTES


async def _is_loaded(api: httpx.AsyncClient, agent: dict[str, Any]) -> bool:
    return all(one["synced"] and one["loaded"] for one in await attached(api, agent))
