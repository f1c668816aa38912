"""Write `docs/reference/skill-rules.md`, a list of rules: `.venv/bin/python scripts/skill_rule_reference.py`."""

from file_hash import ROOT

from roost.agents.library.skills.bundle import BYTES_LIMIT, DEPTH_LIMIT, FILES_LIMIT, PATH_LIMIT, SEGMENT_LIMIT
from roost.agents.library.skills.skill_file import (
    COMPATIBILITY_LIMIT,
    DESCRIPTION_LIMIT,
    FRONT_MATTER_LIMIT,
    NAME_LIMIT,
    SKILL_FILE_LIMIT,
)
from roost.agents.library.skills.verdict.check import CPU_LIMIT, FINDINGS_LIMIT, FINDINGS_PER_RULE, TEXT_LIMIT
from roost.agents.library.skills.verdict.model import SkillRule, VerdictLevel
from roost.agents.library.skills.verdict.rules import RULES

PAGE = ROOT / "docs" / "reference" / "skill-rules.md"
COMMAND = ".venv/bin/python scripts/skill_rule_reference.py"

_HEAD = f"""# Rules for skills

Written from the code by `{COMMAND}`.

A skill is checked when it is registered or published, and again when the rules change. Its verdict is the highest level
of what the rules find: `clean`, `review` (look at it before you use it) or `dangerous` (needs an acknowledgement).
Rules search for known tricks; a clean verdict is no promise that a skill is harmless. `roost skills lint PATH` checks a
folder, a zip archive or a `SKILL.md` on this machine.

All text of a skill is searched, whatever the name or the encoding of the file: instructions, scripts, data. Lines that
continue each other are searched as one; letters of other scripts that look like Latin ones count as those. Images,
fonts, sounds, films and PDFs are not searched.

## Limits

| what | limit |
|---|---|
| files of a skill | {FILES_LIMIT} |
| bytes of all files | {BYTES_LIMIT // 1000**2} MB |
| levels of folders | {DEPTH_LIMIT} |
| bytes of a path, and of each name in it | {PATH_LIMIT}, {SEGMENT_LIMIT} |
| `SKILL.md`, and its front matter | {SKILL_FILE_LIMIT // 1000} kB, {FRONT_MATTER_LIMIT // 1024} KiB |
| characters of `name`, `description`, `compatibility` | {NAME_LIMIT}, {DESCRIPTION_LIMIT}, {COMPATIBILITY_LIMIT} |
| searched characters; a skill with more is dangerous | {TEXT_LIMIT // 1000**2} million |
| seconds of CPU of a check; a skill that needs more is dangerous | {CPU_LIMIT} |
| findings of a rule in a file, and in all | {FINDINGS_PER_RULE}, {FINDINGS_LIMIT} |
"""


def render_rules() -> str:
    """Render the reference page."""
    return "\n".join([_HEAD, *map(_section, (VerdictLevel.DANGEROUS, VerdictLevel.REVIEW))])


def _section(level: VerdictLevel) -> str:
    rows = [_row(rule) for rule in RULES if rule.level is level]
    return "\n".join([f"## {level.value.capitalize()}", "", "| rule | finds |", "|---|---|", *rows, ""])


def _row(rule: SkillRule) -> str:
    return f"| `{rule.id}` | {rule.description} |"


if __name__ == "__main__":
    PAGE.write_text(render_rules())
