"""Numbers of versions, references, and acknowledgements."""

from datetime import UTC, datetime
from typing import Any

import pytest

from roost.agents.library.skills import model
from roost.agents.library.skills.errors import DangerousSkill, InvalidSkillRequest, SkillVersionNotFound
from roost.agents.library.skills.model import SkillVersion
from roost.agents.library.skills.skill_wants import SkillWants
from roost.agents.library.skills.verdict import Finding, Verdict, VerdictLevel

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CID = "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi"
ORDERED = [
    *("1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta", "1.0.0-beta.2", "1.0.0-beta.11"),
    *("1.0.0-rc.1", "1.0.0", "1.0.1", "1.10.0", "2.0.0"),
]
"""The order of semver.org, section 11, and numbers after it."""


def version(number: str, **fields: Any) -> SkillVersion:
    given = {"cid": CID, "verdict": Verdict(VerdictLevel.CLEAN, (), "1"), "wants": SkillWants(), **fields}
    return SkillVersion(
        id=number,
        skill_id="k",
        tenant_id="t",
        version=number,
        description="",
        env_vars=(),
        file_id=None,
        warnings=(),
        files=1,
        size=1,
        created_at=NOW,
        **given,
    )


def test_versions_are_ordered() -> None:
    assert sorted(set(ORDERED), key=model.version_key) == ORDERED
    newest_first = [one.version for one in model.sort_versions(map(version, ORDERED))]
    assert newest_first == [*reversed(ORDERED[7:]), *reversed(ORDERED[:7])]


@pytest.mark.parametrize("text", ["", "1", "1.0", "v1.0.0", "01.0.0", "1.0.0-", "1.0.0-01", "1.0.0+b", "1.0.0\n", "x"])
def test_malformed_versions_are_refused(text: str) -> None:
    with pytest.raises(InvalidSkillRequest):
        model.parse_version(text)


def test_authors_write_short_versions() -> None:
    written = {"1": "1.0.0", "v2.1": "2.1.0", "v1.2.3": "1.2.3", "1.0.0-rc.1": "1.0.0-rc.1", "": None, "new": None}
    assert {text: model.complete_version(text) for text in written} == written


def test_the_next_version() -> None:
    assert model.next_version([]) == "1.0.0"
    assert model.next_version(["1.0.0", "1.2.9", "1.0.4"]) == "1.2.10"
    assert model.next_version(["1.0.0", "2.0.0-rc.1"]) == "2.0.0"


def test_newer_versions_are_found() -> None:
    versions = [version(number) for number in ("1.0.0", "1.1.0", "2.0.0-rc.1")]
    assert model.find_newer(versions[0], versions) == versions[1]
    assert model.find_newer(versions[1], versions) is None
    assert model.find_newer(versions[2], versions) is None
    assert model.find_version(versions, "1.1.0") == versions[1]
    assert model.find_version(versions, CID) == versions[0]
    with pytest.raises(SkillVersionNotFound):
        model.find_version(versions, "3.0.0")


@pytest.mark.parametrize(
    "slug", ["ada/notes", "@ada", "@/notes", "@Ada/notes", "@ada/", "@ada/a/b", "@ada/-a", "@-a/b"]
)
def test_malformed_slugs_are_refused(slug: str) -> None:
    assert model.parse_slug("@ada-l/Notes_2") == "@ada-l/Notes_2"
    with pytest.raises(InvalidSkillRequest):
        model.parse_slug(slug)


def test_names_of_variables() -> None:
    assert model.parse_env_vars(["B", "A", "B"]) == ["B", "A"]
    for names in (["A=B"], [""], ["A\n"], [f"A{number}" for number in range(101)]):
        with pytest.raises(InvalidSkillRequest):
            model.parse_env_vars(names)


def test_dangers_are_named_until_acknowledged() -> None:
    findings = [Finding(f"rule-{line}", VerdictLevel.DANGEROUS, "run.sh", line, "") for line in range(1, 13)]
    findings.append(Finding("mild", VerdictLevel.REVIEW, "a", 1, ""))
    dangerous = Verdict(VerdictLevel.DANGEROUS, findings, "1")
    model.check_acknowledged("notes", dangerous, acknowledged=True)
    with pytest.raises(DangerousSkill) as caught:
        model.check_acknowledged("notes", dangerous, acknowledged=False)
    assert "notes" in caught.value.message
    assert "rule-10 in run.sh:10" in caught.value.message
    assert "2 more" in caught.value.message
    assert "mild" not in caught.value.message
