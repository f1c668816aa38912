"""The templates of the package: each is valid without a warning, and has the files that an agent begins with."""

from pathlib import Path

import pytest

import roost
from roost.agents.library.templates.manifest import parse_template_manifest

CATALOGUE = Path(roost.__file__).parent / "agents/library/templates/catalogue"
SLUGS = ("project-helper", "researcher", "server-nurse", "site-watcher", "telegram-assistant")
FILES = {"AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "TOOLS.md", "HEARTBEAT.md"}


@pytest.mark.parametrize("slug", SLUGS)
def test_templates_are_complete(slug: str) -> None:
    folder = CATALOGUE / slug
    parsed = parse_template_manifest((folder / "manifest.json").read_bytes())
    assert (parsed.errors, parsed.warnings) == ([], [])
    assert parsed.manifest is not None
    assert parsed.manifest.template.slug == slug
    assert (folder / "README.md").read_text().startswith(f"# {parsed.manifest.agent.name}\n")
    assert {path.name for path in (folder / "workspace").iterdir()} >= FILES


def test_all_templates_are_tested() -> None:
    assert sorted(path.name for path in CATALOGUE.iterdir()) == list(SLUGS)
