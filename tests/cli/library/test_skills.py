"""`roost skills`: the library of the server; ids, slugs, names and CIDs stand for skills."""

import json
import zipfile
from pathlib import Path

import pytest

from tests.cli.skills import CHECK, CID, CID_OF_UPDATE, DANGEROUS, EVIL, SHOWN_FINDING, SKILL, UPDATE
from tests.cli.terminal import FakeServer

SKILL_FILE = "---\nname: notes\ndescription: Takes notes.\n---\n# Notes\n"


@pytest.fixture
def library(server: FakeServer) -> FakeServer:
    server.answers["GET /v0/skills"] = (200, {"skills": [UPDATE, EVIL], "currentUserId": "t"})
    for reference in ("s1", CID, CID_OF_UPDATE):
        versions = {"skillId": "s1", "name": "notes", "versions": [UPDATE, SKILL]}
        server.answers[f"GET /v0/skills/{reference}/versions"] = (200, versions)
    server.answers["POST /v0/skills"] = (201, {"success": True, "skill": SKILL})
    return server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "notes" / "scripts").mkdir(parents=True)
    (tmp_path / "notes" / "SKILL.md").write_text(SKILL_FILE)
    (tmp_path / "notes" / "scripts" / "run.sh").write_text("#!/bin/sh\n")
    return tmp_path / "notes"


def test_list_shows_skills_with_verdicts(library: FakeServer) -> None:
    head, first, second = library.run("skills", "list").stdout.splitlines()
    assert head.split()[:4] == ["NAME", "SLUG", "VERSION", "VERDICT"]
    assert first.split()[:4] == ["notes", "@ada/notes", "1.1.0", "clean"]
    assert second.split()[:3] == ["evil", "1.0.0", "dangerous"]
    assert json.loads(library.run("skills", "list", "-o", "json").stdout) == [UPDATE, EVIL]


@pytest.mark.parametrize("name", ["s1", "@ada/notes", "notes", CID_OF_UPDATE])
def test_show_by_any_name(library: FakeServer, name: str) -> None:
    shown = library.run("skills", "show", name)
    assert shown.exit_code == 0, shown.stderr
    assert shown.stdout.splitlines()[-len(CHECK) :] == CHECK
    assert CID_OF_UPDATE in shown.stdout
    assert json.loads(library.run("skills", "show", name, "-o", "json").stdout) == UPDATE


def test_show_an_older_version_and_findings(library: FakeServer) -> None:
    assert "1.0.0" in library.run("skills", "show", CID).stdout
    shown = library.run("skills", "show", "evil").stdout.splitlines()
    assert SHOWN_FINDING in shown
    assert shown[-1] == "evil: dangerous"


def test_names_that_mean_none_or_several(library: FakeServer) -> None:
    nobody = library.run("skills", "show", "other")
    assert (nobody.exit_code, "roost skills list" in nobody.stderr) == (5, True)
    unknown = "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku"
    assert library.run("skills", "show", unknown).exit_code == 5
    twin = {**SKILL, "skillId": "s3", "slug": "@eve/notes"}
    library.answers["GET /v0/skills"] = (200, {"skills": [SKILL, twin], "currentUserId": "t"})
    both = library.run("skills", "show", "notes")
    assert (both.exit_code, "2 skills have the name" in both.stderr) == (2, True)
    assert json.loads(library.run("skills", "show", "@eve/notes", "-o", "json").stdout)["skillId"] == "s3"


def test_add_a_folder(library: FakeServer, folder: Path) -> None:
    added = library.run("skills", "add", str(folder), "--version", "2.0.0", "--slug", "@ada/notes")
    assert added.exit_code == 0, added.stderr
    assert added.stdout.splitlines()[-len(CHECK) :] == CHECK
    assert CID in added.stdout
    (form,) = library.bodies("POST /v0/skills")
    for part in (
        b'filename="SKILL.md"',
        b'filename="scripts/run.sh"',
        b'"version"\r\n\r\n2.0.0',
        b"\r\n@ada/notes\r\n",
    ):
        assert part in form
    assert json.loads(library.run("skills", "add", str(folder), "-o", "json").stdout) == SKILL


def test_add_an_archive_or_a_cid(library: FakeServer, folder: Path) -> None:
    with zipfile.ZipFile(folder.parent / "notes.zip", "w") as archive:
        archive.write(folder / "SKILL.md", "notes/SKILL.md")
    assert library.run("skills", "add", str(folder.parent / "notes.zip")).exit_code == 0
    assert library.run("skills", "add", CID, "--version", "3.0.0").exit_code == 0
    form, registration = library.bodies("POST /v0/skills")
    assert b'filename="notes.zip"' in form
    assert registration == {"skillCid": CID, "version": "3.0.0"}


def test_invalid_sources_are_not_sent(library: FakeServer, folder: Path) -> None:
    (folder / "link").symlink_to("/etc/passwd")
    linked = library.run("skills", "add", str(folder))
    assert "link" in str(linked.exception)
    for source in (str(folder / "SKILL.md"), str(folder / "nothing"), ""):
        assert library.run("skills", "add", source).exit_code == 2
    assert library.bodies("POST /v0/skills") == []


def test_a_conflict_says_what_to_do(library: FakeServer, folder: Path) -> None:
    refusal = "Skill version conflict: 1.0.0 of notes has other content"
    library.answers["POST /v0/skills"] = (409, {"error": refusal})
    library.headers["X-Error-Code"] = "skill_version_conflict"
    refused = library.run("skills", "add", str(folder))
    assert (refused.exit_code, refused.stderr.startswith(f"Error: {refusal}; changed files need")) == (1, True)


def test_versions_of_a_skill_are_listed(library: FakeServer) -> None:
    lines = library.run("skills", "versions", "notes").stdout.splitlines()
    assert [line.split()[:2] for line in lines] == [["VERSION", "VERDICT"], ["1.1.0", "clean"], ["1.0.0", "clean"]]
    assert json.loads(library.run("skills", "versions", "s1", "-o", "json").stdout) == [UPDATE, SKILL]


def test_publish_sends_given_fields_only(library: FakeServer) -> None:
    published = {**SKILL, "hubSkillId": "h1", "category": "data", "tags": ["a"], "authorName": "Ada"}
    library.answers["POST /v0/skills/s1/publish"] = (200, {"success": True, "skill": published})
    options = ("--version", CID, "--category", "data", "--tag", "a", "--tag", "b", "--changelog", "First")
    shown = library.run("skills", "publish", "notes", *options)
    assert "@ada/notes" in shown.stdout
    assert "h1" in shown.stdout
    assert library.run("skills", "publish", "@ada/notes").exit_code == 0
    all_fields = {"version": CID, "category": "data", "tags": ["a", "b"], "changelog": "First"}
    assert library.bodies("POST /v0/skills/s1/publish") == [all_fields, {}]


def test_delete_a_skill_or_a_version(library: FakeServer) -> None:
    deleted = (200, {"success": True, "message": "Skill removed from the library", "wasInLibrary": True})
    library.answers["DELETE /v0/skills/s1"] = library.answers[f"DELETE /v0/skills/{CID}"] = deleted
    refused = library.run("skills", "delete", "notes", input="n\n")
    assert (refused.exit_code, "notes with all its versions?" in refused.stderr) == (1, True)
    assert library.run("skills", "delete", "notes", "-y").stdout == "Skill removed from the library\n"
    one = library.run("skills", "delete", CID, input="y\n")
    assert (one.exit_code, "version 1.0.0 of notes?" in one.stderr) == (0, True)
    library.answers["DELETE /v0/skills/s1"] = (409, {"error": "Skill is attached to an agent: a1"})
    library.headers["X-Error-Code"] = "skill_attached"
    used = library.run("skills", "delete", "s1", "-y")
    assert used.stderr == "Error: Skill is attached to an agent: a1; detach it first with `roost skills detach`\n"


def test_a_dangerous_skill_is_added_with_its_findings(library: FakeServer, folder: Path) -> None:
    library.answers["POST /v0/skills"] = (201, {"success": True, "skill": {**SKILL, "verdict": DANGEROUS}})
    added = library.run("skills", "add", str(folder))
    assert added.exit_code == 0
    assert SHOWN_FINDING in added.stdout.splitlines()
    assert added.stdout.endswith("notes: dangerous\n")
