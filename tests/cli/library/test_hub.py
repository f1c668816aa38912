"""`roost hub`: published skills are shown with their verdict before they are installed."""

import json
from typing import Any

import pytest

from tests.cli.library.test_agent_skills import ATTACHED, LOADED, PATH
from tests.cli.skills import AT, CHECK, CID, CID_OF_UPDATE, CLEAN, DANGEROUS, SHOWN_FINDING, SKILL
from tests.cli.terminal import FakeServer

LISTED: dict[str, Any] = {
    "hubSkillId": "h1",
    **{name: SKILL[name] for name in ("skillCid", "version", "name", "slug", "description", "envVars", "wants")},
    "authorName": "Ada",
    "category": "data",
    "tags": ["a", "b"],
    "license": "MIT",
    "verdict": CLEAN,
    "featured": False,
    "installCount": 3,
    "source": None,
    "createdAt": AT,
    "updatedAt": AT,
}
VERSION = {"version": "1.0.0", "skillCid": CID, "changelog": "First", "verdict": "clean", "size": 1, "createdAt": AT}
DETAIL = {**LISTED, "longDescription": "# Notes\x1b[2J", "versions": [VERSION]}
ELSEWHERE = {
    **LISTED,
    "hubSkillId": "k~ada~notes",
    "slug": "@k-ada/notes",
    "source": "https://hub.example",
    "skillCid": None,
    "verdict": None,
    "wants": None,
    "envVars": [],
}
INSTALLED = (200, {"success": True, "skill": SKILL})


@pytest.fixture
def hub(server: FakeServer) -> FakeServer:
    server.answers["GET /v0/hub/%40ada/notes"] = (200, {"skill": DETAIL})
    server.answers["POST /v0/hub/h1/install"] = INSTALLED
    server.answers["GET /v0/agents"] = (200, {"agents": [{"agentId": "a1", "name": "Ada"}]})
    server.answers[f"GET {PATH}"] = [(200, {"skills": []}), (200, {"skills": [ATTACHED]})]
    server.answers[f"POST {PATH}"] = (200, {"success": True, "attached": 1, "skills": [ATTACHED]})
    return server


def test_search_follows_pages(hub: FakeServer) -> None:
    first = "GET /v0/hub?q=take+notes&category=data&sort=name&featured=true&limit=100"
    hub.answers[first] = (200, {"skills": [LISTED, ELSEWHERE], "nextCursor": "x y", "categories": []})
    second = first.replace("limit=100", "limit=50&cursor=x+y")
    hub.answers[second] = (200, {"skills": [LISTED], "nextCursor": None, "categories": []})
    options = ("--category", "data", "--sort", "name", "--featured", "--limit", "150")
    lines = hub.run("hub", "search", "take", "notes", *options).stdout.splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["SLUG", "VERSION", "VERDICT"],
        ["@ada/notes", "1.0.0", "clean"],
        ["k~ada~notes", "1.0.0", "unchecked"],
        ["@ada/notes", "1.0.0", "clean"],
    ]
    hub.answers["GET /v0/hub?limit=1"] = (200, {"skills": [LISTED], "nextCursor": "x", "categories": []})
    assert json.loads(hub.run("hub", "search", "--limit", "1", "-o", "json").stdout) == [LISTED]


def test_show_prints_a_published_skill(hub: FakeServer) -> None:
    shown = hub.run("hub", "show", "@ada/notes").stdout
    lines = shown.splitlines()
    assert ["tags", "a,", "b"] in [line.split() for line in lines]
    assert set(CHECK[1:]) < set(lines)
    assert ["1.0.0", "clean", "2026-01-02", "03:04", "First", CID] in [line.split() for line in lines]
    assert lines[-1].startswith("# Notes")
    assert "\x1b" not in shown
    assert json.loads(hub.run("hub", "show", "@ada/notes", "-o", "json").stdout) == DETAIL
    hub.answers["GET /v0/hub/k~ada~notes?version=1.0.0"] = (200, {"skill": {**DETAIL, **ELSEWHERE, "versions": []}})
    assert "notes: unchecked" in hub.run("hub", "show", "k~ada~notes", "--version", "1.0.0").stdout
    unknown = hub.run("hub", "show", "other")
    assert (unknown.exit_code, "roost hub search" in unknown.stderr) == (5, True)


def test_install_shows_the_verdict_first(hub: FakeServer) -> None:
    installed = hub.run("hub", "install", "@ada/notes")
    assert installed.exit_code == 0, installed.stderr
    assert installed.stdout.splitlines()[-2:] == ["notes: clean", "Installed notes 1.0.0."]
    assert hub.bodies("POST /v0/hub/h1/install") == [{"version": CID, "acknowledge": False}]
    assert json.loads(hub.run("hub", "install", "@ada/notes", "-o", "json").stdout) == SKILL


@pytest.mark.parametrize("output", ["table", "json"])
def test_a_dangerous_one_needs_an_acknowledgement(hub: FakeServer, output: str) -> None:
    hub.answers["GET /v0/hub/%40ada/notes"] = (200, {"skill": {**DETAIL, "verdict": DANGEROUS}})
    refused = hub.run("hub", "install", "@ada/notes", "-o", output)
    assert refused.exit_code == 1
    assert (refused.stdout + refused.stderr).splitlines().count(SHOWN_FINDING) == 1
    assert "`--acknowledge` accepts all" in refused.stderr
    assert hub.bodies("POST /v0/hub/h1/install") == []
    assert hub.run("hub", "install", "@ada/notes", "--acknowledge").exit_code == 0
    assert hub.bodies("POST /v0/hub/h1/install") == [{"version": CID, "acknowledge": True}]


def test_install_for_an_agent(hub: FakeServer) -> None:
    installed = hub.run("hub", "install", "@ada/notes", "--agent", "Ada")
    assert installed.stdout.splitlines()[-2:] == ["Installed notes 1.0.0.", LOADED]
    assert hub.bodies(f"POST {PATH}") == [{"acknowledge": False, "skillCids": [CID]}]
    assert hub.run("hub", "install", "@ada/notes", "--agent", "Bo").exit_code == 5
    assert len(hub.bodies("POST /v0/hub/h1/install")) == 1


def test_install_for_an_agent_that_has_an_older_version(hub: FakeServer) -> None:
    hub.answers[f"GET {PATH}"] = (200, {"skills": [{**ATTACHED, "skillCid": CID_OF_UPDATE}]})
    hub.answers[f"POST {PATH}/s1/update"] = (200, {"success": True, "previousVersion": "0.9.0", "skill": ATTACHED})
    assert hub.run("hub", "install", "@ada/notes", "--agent", "Ada").exit_code == 0
    assert hub.bodies(f"POST {PATH}/s1/update") == [{"acknowledge": False, "skillCid": CID}]


def test_a_conflict_in_the_library_says_what_to_do(hub: FakeServer) -> None:
    hub.answers["POST /v0/hub/h1/install"] = (
        409,
        {"error": "Your library has another skill with this name: notes, s7"},
    )
    hub.headers["X-Error-Code"] = "library_skill_conflict"
    refused = hub.run("hub", "install", "@ada/notes")
    assert refused.exit_code == 1
    assert "roost skills delete" in refused.stderr


def test_withdraw_asks_before_it_removes(hub: FakeServer) -> None:
    hub.answers["DELETE /v0/hub/h1"] = (200, {"success": True, "message": "@ada/notes is no longer in the hub"})
    assert hub.run("hub", "withdraw", "@ada/notes", input="n\n").exit_code == 1
    assert hub.run("hub", "withdraw", "@ada/notes", "--yes").stdout == "@ada/notes is no longer in the hub\n"
