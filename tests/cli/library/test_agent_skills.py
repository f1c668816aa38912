"""`roost skills attach`, `detach`, `updates` and `update`: what agents have, and what they lack for it."""

import json

import pytest

from tests.cli.skills import AT, CID, CID_OF_UPDATE, DANGEROUS, EVIL, SHOWN_FINDING, SKILL, UPDATE
from tests.cli.terminal import FakeServer

LOADED = "notes 1.0.0: its files are in the workspace, and the engine lists it"
NOTHING = {"secrets": [], "programs": [], "hosts": []}
ATTACHED = {
    "agentId": "a1",
    **{name: SKILL[name] for name in ("skillId", "skillCid", "name", "slug", "description", "version")},
    "attachedAt": AT,
    "synced": True,
    "verdict": "clean",
    "loaded": True,
    "missing": NOTHING,
}
NEWER = {
    "skillId": "s1",
    "name": "notes",
    "skillCid": CID,
    "version": "1.0.0",
    "latestCid": CID_OF_UPDATE,
    "latestVersion": "1.1.0",
    "verdict": "clean",
}
PATH = "/v0/agents/a1/skills"


@pytest.fixture
def library(server: FakeServer) -> FakeServer:
    agents = [{"agentId": "a1", "name": "Ada L"}, {"agentId": "a2", "name": "Bo"}]
    server.answers["GET /v0/agents"] = (200, {"agents": agents})
    server.answers["GET /v0/skills"] = (200, {"skills": [SKILL, EVIL], "currentUserId": "t"})
    for reference in ("s1", CID):
        versions = {"skillId": "s1", "name": "notes", "versions": [UPDATE, SKILL]}
        server.answers[f"GET /v0/skills/{reference}/versions"] = (200, versions)
    server.answers[f"GET {PATH}"] = (200, {"skills": [ATTACHED]})
    server.answers[f"POST {PATH}"] = (200, {"success": True, "attached": 1, "skills": [ATTACHED]})
    server.answers["GET /v0/secrets"] = (200, {"secrets": [{"name": "B_KEY"}], "secretLimit": 100})
    server.answers[f"GET {PATH}/updates"] = (200, {"updates": [NEWER]})
    server.answers["GET /v0/agents/a2/skills/updates"] = (200, {"updates": []})
    after = {"success": True, "previousVersion": "1.0.0", "skill": {**ATTACHED, "version": "1.1.0"}}
    server.answers[f"POST {PATH}/s1/update"] = (200, after)
    return server


def test_attach_takes_names_and_cids(library: FakeServer) -> None:
    attached = library.run("skills", "attach", "Ada L", "notes", CID)
    assert attached.exit_code == 0, attached.stderr
    assert (attached.stdout.splitlines(), attached.stderr) == (["Attached 1.", LOADED], "")
    assert library.bodies(f"POST {PATH}") == [{"skillCids": ["s1", CID], "acknowledge": False}]
    assert json.loads(library.run("skills", "attach", "a1", "s1", "-o", "json").stdout) == [ATTACHED]


@pytest.mark.parametrize(
    ("synced", "loaded", "fault", "shown"),
    [
        (False, None, None, "the agent gets its files at its next start"),
        (True, None, None, "its files are in the workspace"),
        (True, False, None, "its files are in the workspace; the engine does not list it yet"),
        (True, False, "name is\x1b a number", "the engine does not load it: name is\ufffd a number"),
        (True, True, "OpenClaw does not use it\x1b.", "OpenClaw does not use it\ufffd."),
    ],
)
def test_attach_tells_where_the_files_are(
    library: FakeServer, synced: bool, loaded: bool | None, fault: str | None, shown: str
) -> None:
    skills = [
        {**ATTACHED, "synced": synced, "loaded": loaded, "fault": fault, "missing": {**NOTHING, "programs": None}}
    ]
    library.answers[f"POST {PATH}"] = (200, {"success": True, "attached": 1, "skills": skills})
    assert library.run("skills", "attach", "a1", "notes").stdout.splitlines()[1] == f"notes 1.0.0: {shown}"


def test_attach_tells_what_is_missing(library: FakeServer) -> None:
    missing = {"secrets": ["A_KEY", "B_KEY"], "programs": ["jq"], "hosts": ["a.example"]}
    library.answers[f"POST {PATH}"] = (200, {"attached": 0, "skills": [{**ATTACHED, "missing": missing}]})
    attached = library.run("skills", "attach", "Ada L", "notes")
    assert attached.exit_code == 0
    assert attached.stderr.splitlines() == [
        "notes lacks the secret A_KEY",
        "  roost secrets create A_KEY && roost secrets attach 'Ada L' A_KEY",
        "notes lacks the secret B_KEY",
        "  roost secrets attach 'Ada L' B_KEY",
        "notes lacks the program jq",
        "  Install it on the server's machine: agents have the programs in its /usr",
        "notes lacks the way to a.example",
        "  Allow it in the server's settings: `egress_allow_hosts`, `egress_deny_hosts`",
    ]


def test_a_dangerous_skill_needs_an_acknowledgement(library: FakeServer) -> None:
    refused = library.run("skills", "attach", "a1", "notes", "evil")
    assert refused.exit_code == 1
    assert refused.stderr.splitlines()[0] == SHOWN_FINDING
    assert "evil 1.0.0 is dangerous" in refused.stderr
    assert "--acknowledge" in refused.stderr
    assert library.bodies(f"POST {PATH}") == []
    assert library.run("skills", "attach", "a1", "evil", "--acknowledge").exit_code == 0
    assert library.bodies(f"POST {PATH}") == [{"skillCids": ["s2"], "acknowledge": True}]


def test_detach_removes_a_skill_of_the_agent(library: FakeServer) -> None:
    library.answers[f"DELETE {PATH}/s1"] = (200, {"success": True, "message": "Skill detached"})
    assert library.run("skills", "detach", "Ada L", "notes").stdout == "Detached.\n"
    absent = library.run("skills", "detach", "Ada L", "evil")
    assert (absent.exit_code, absent.stderr) == (5, "Error: Ada L does not have the skill evil.\n")


def test_list_of_an_agent(library: FakeServer) -> None:
    head, row = library.run("skills", "list", "--agent", "Ada L").stdout.splitlines()
    assert "LOADED" in head
    assert row.split()[:4] == ["notes", "@ada/notes", "1.0.0", "clean"]
    assert json.loads(library.run("skills", "list", "--agent", "a1", "-o", "json").stdout) == [ATTACHED]
    library.answers[f"GET {PATH}"] = (200, {"skills": [{**ATTACHED, "missing": {**NOTHING, "programs": ["jq"]}}]})
    assert library.run("skills", "list", "--agent", "a1").stderr.startswith("notes lacks the program jq\n")


def test_updates_are_listed_and_applied(library: FakeServer) -> None:
    listed = library.run("skills", "updates")
    assert [line.split() for line in listed.stdout.splitlines()[1:]] == [
        ["Ada", "L", "notes", "1.0.0", "1.1.0", "clean"]
    ]
    assert library.bodies(f"POST {PATH}/s1/update") == []
    assert json.loads(library.run("skills", "updates", "Bo", "-o", "json").stdout) == []
    applied = library.run("skills", "updates", "Ada L", "--apply", "-o", "json")
    assert applied.exit_code == 0
    assert json.loads(applied.stdout) == [{"agent": "Ada L", "agentId": "a1", **NEWER}]
    assert applied.stderr.endswith("Ada L: notes 1.0.0 -> 1.1.0\n")
    assert library.bodies(f"POST {PATH}/s1/update") == [{"skillCid": CID_OF_UPDATE, "acknowledge": False}]


def test_a_dangerous_update_is_left_out(library: FakeServer) -> None:
    evil = {**NEWER, "skillId": "s2", "name": "evil", "verdict": "dangerous"}
    library.answers[f"GET {PATH}/updates"] = (200, {"updates": [evil, NEWER]})
    library.answers[f"POST {PATH}/s2/update"] = library.answers[f"POST {PATH}/s1/update"]
    applied = library.run("skills", "updates", "--apply")
    assert applied.exit_code == 1
    assert "evil 1.1.0 is dangerous and was left out" in applied.stderr
    assert "roost skills update a1 s2 --acknowledge" in applied.stderr
    assert "notes 1.0.0 -> 1.1.0" in applied.stderr
    assert library.bodies(f"POST {PATH}/s2/update") == []
    assert library.run("skills", "updates", "--apply", "--acknowledge").exit_code == 0
    assert library.bodies(f"POST {PATH}/s2/update") == [{"skillCid": CID_OF_UPDATE, "acknowledge": True}]


def test_update_to_the_newest_or_a_version(library: FakeServer) -> None:
    missing = {**NOTHING, "programs": ["jq"]}
    after = {**ATTACHED, "version": "1.1.0", "missing": missing}
    library.answers[f"GET {PATH}"] = (200, {"skills": [after, {**ATTACHED, "skillId": "s9", "name": "other"}]})
    updated = library.run("skills", "update", "Ada L", "notes")
    assert updated.stdout.splitlines() == ["notes 1.0.0 -> 1.1.0", LOADED.replace("1.0.0", "1.1.0")]
    assert updated.stderr.splitlines()[0] == "notes lacks the program jq"
    for version in ("1.0.0", CID):
        assert library.run("skills", "update", "Ada L", "notes", "--version", version).exit_code == 0
    older = {"skillCid": CID, "acknowledge": False}
    assert library.bodies(f"POST {PATH}/s1/update") == [{"acknowledge": False}, older, older]
    assert library.run("skills", "update", "Ada L", "notes", "--version", "9.9.9").exit_code == 5
    assert "Bo does not have" in library.run("skills", "update", "Bo", "notes").stderr


def test_a_dangerous_update_needs_an_acknowledgement(library: FakeServer) -> None:
    versions = {"skillId": "s1", "name": "notes", "versions": [{**UPDATE, "verdict": DANGEROUS}, SKILL]}
    library.answers["GET /v0/skills/s1/versions"] = (200, versions)
    refused = library.run("skills", "update", "a1", "notes")
    assert (refused.exit_code, refused.stderr.splitlines()[0]) == (1, SHOWN_FINDING)
    assert library.run("skills", "update", "a1", "notes", "--acknowledge").exit_code == 0
    assert library.bodies(f"POST {PATH}/s1/update") == [{"acknowledge": True}]


def test_a_new_agent_has_skills(library: FakeServer) -> None:
    library.answers["POST /v0/agents"] = (201, {"success": True, "agent": {"agentId": "a1", "name": "Ada L"}})
    made = library.run("agents", "create", "Ada L", "--skill", "notes", "--skill", CID)
    assert (made.exit_code, made.stdout.splitlines()[-1]) == (0, LOADED)
    assert library.bodies("POST /v0/agents") == [{"name": "Ada L", "skillCids": ["s1", CID], "acknowledge": False}]
    refused = library.run("agents", "create", "Eve", "--skill", "evil")
    assert (refused.exit_code, refused.stderr.splitlines()[0]) == (1, SHOWN_FINDING)
    assert len(library.bodies("POST /v0/agents")) == 1
