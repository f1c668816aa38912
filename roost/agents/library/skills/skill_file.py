"""`SKILL.md`: instructions for an agent below a YAML front matter (agentskills.io/specification). Pure.

Required fields and their limits are strict. What agents ignore, and forms that only some engines know, are warnings.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from roost.agents.library.skills.bundle import SKILL_FILE, Bundle
from roost.agents.library.skills.errors import InvalidSkill
from roost.agents.library.skills.skill_wants import ENV_EXAMPLE, SkillWants, read_wants
from roost.core.yaml_document import InvalidYamlDocument, parse_yaml
from roost.drivers.model.json_access import as_list, as_object

SKILL_FILE_LIMIT = 256_000
"""Bytes; OpenClaw does not load a larger `SKILL.md`."""
_HERMES_READS = 4_000  # characters of a file
_UNLISTED_NAMES = frozenset({"venv", "site-packages"})  # folders in which Hermes looks for no skills
CONDITION = "Hermes lists it under the condition"
"""Begin of the warning about a skill that Hermes leaves out on some systems."""
_HERMES_CONDITIONS = ("platforms", "environments")
FRONT_MATTER_LIMIT = 64 * 1024
NAME_LIMIT, DESCRIPTION_LIMIT, COMPATIBILITY_LIMIT = 64, 1024, 500
BODY_LINES_ADVISED = 500
METADATA_LIMIT = 64
TOOLS_LIMIT = 100
TEXT_LIMIT = 4096

KNOWN_KEYS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_FENCE = re.compile(r"--- *")  # Hermes reads no front matter after a tab
_FENCE_LINE = re.compile(r"^---[ \t]*$\n?", re.MULTILINE)
_TOOL = re.compile(r"[^\s,(]+(?:\([^()]*\))?")


@dataclass(frozen=True)
class SkillFile:
    """Content of a `SKILL.md`.

    metadata: nested values are JSON. allowed_tools: tools that the author expects to be allowed; nothing grants them.
    """

    name: str
    description: str
    license: str | None = None
    compatibility: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict[str, str])
    allowed_tools: Sequence[str] = ()
    wants: SkillWants = field(default_factory=SkillWants)
    warnings: Sequence[str] = ()


def parse_bundle(bundle: Bundle) -> SkillFile:
    """Parse the `SKILL.md` of a bundle, and its `.env.example`. Raises InvalidSkill."""
    example = bundle.files.get(ENV_EXAMPLE)
    return parse_skill_file(bundle.files[SKILL_FILE].content, example.content if example else None)


def parse_skill_file(data: bytes, env_example: bytes | None = None) -> SkillFile:
    """Parse a `SKILL.md`, and the `.env.example` beside it. Raises InvalidSkill."""
    source, body = _split_text(_decode(data))
    fields = _parse_front_matter(source)
    metadata, nested = _read_metadata(fields)
    wants, wants_warnings = read_wants(fields, env_example)
    return SkillFile(
        name=_read_name(fields),
        description=_read_text(fields, "description", DESCRIPTION_LIMIT, is_required=True) or "",
        license=_read_text(fields, "license", TEXT_LIMIT),
        compatibility=_read_text(fields, "compatibility", COMPATIBILITY_LIMIT),
        metadata=metadata,
        allowed_tools=_read_tools(fields),
        wants=wants,
        warnings=(
            *_key_warnings(fields),
            *nested,
            *wants_warnings,
            *_body_warnings(body),
            *_hermes_warnings(fields, source),
        ),
    )


def _decode(data: bytes) -> str:
    if len(data) > SKILL_FILE_LIMIT:
        raise InvalidSkill(f"SKILL.md: larger than {SKILL_FILE_LIMIT // 1000} kB, which not all engines load")
    if b"\0" in data:
        raise InvalidSkill(f"SKILL.md: not text (a NUL at byte {data.index(0)})")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise InvalidSkill(f"SKILL.md: not UTF-8 text (byte {error.start})") from None


def _split_text(text: str) -> tuple[str, str]:
    """Return the front matter and the body."""
    first, _, rest = text.partition("\n")
    if not _FENCE.fullmatch(first):
        raise InvalidSkill("SKILL.md:1: must be `---`, the begin of the front matter")
    end = _FENCE_LINE.search(rest, 0, FRONT_MATTER_LIMIT)
    if end is None:
        raise InvalidSkill(f"SKILL.md: no `---` ends the front matter within {FRONT_MATTER_LIMIT // 1024} KiB")
    if not end[0].endswith("\n"):
        raise InvalidSkill("SKILL.md: a line break must follow the `---` that ends the front matter")
    return rest[: end.start()], rest[end.end() :]


def _parse_front_matter(source: str) -> Mapping[str, Any]:
    try:
        document = parse_yaml(source, first_line=2)
    except InvalidYamlDocument as error:
        raise InvalidSkill(f"SKILL.md:{error.line}: {error.reason}") from None
    for key in ("name", "description"):  # engines drop a skill in which one of them is no text
        if (kind := document.ambiguous.get((key,))) and document.content[key]:
            line, text = document.lines[key,], document.content[key][:NAME_LIMIT]
            raise InvalidSkill(
                f'SKILL.md:{line}: engines read the {key} {text} as {kind}; put it into quotes: "{text}"'
            )
    for line, reason in sorted(document.unportable.items()):
        raise InvalidSkill(f"SKILL.md:{line}: not all engines can read this: {reason}")
    try:  # with libyaml, as Hermes does, which takes the lines for text with their quotes if this fails
        yaml.load(source, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 2}" if error.problem_mark else ""
        raise InvalidSkill(
            f"SKILL.md{line}: not all engines can read this ({error.problem}); put the value into quotes"
        ) from None
    except (ValueError, OverflowError) as error:  # an unquoted value like a date or a number that is none
        raise InvalidSkill(f"SKILL.md: put the values into quotes: {str(error)[:100]}") from None
    return document.content


def _read_name(fields: Mapping[str, Any]) -> str:
    name = _read_text(fields, "name", NAME_LIMIT, is_required=True) or ""
    if not _NAME.fullmatch(name):
        raise InvalidSkill(
            f"SKILL.md: name must be lower-case letters, digits and single hyphens between them, got {name!r}"
        )
    if fields["name"] != name:
        raise InvalidSkill(f"SKILL.md: name must have no white space around it, got {fields['name'][:80]!r}")
    if name in _UNLISTED_NAMES:
        raise InvalidSkill(f"SKILL.md: name must not be {name}: engines skip folders with this name")
    return name


def _read_text(fields: Mapping[str, Any], key: str, limit: int, *, is_required: bool = False) -> str | None:
    value = fields.get(key, "")
    if not isinstance(value, str):
        raise InvalidSkill(f"SKILL.md: {key} must be text")
    text = value.strip()
    if is_required and not text:
        raise InvalidSkill(f"SKILL.md: {key} is missing")
    if len(text) > limit:
        raise InvalidSkill(f"SKILL.md: {key} must be at most {limit} characters, got {len(text)}")
    return text or None


def _read_metadata(fields: Mapping[str, Any]) -> tuple[Mapping[str, str], Sequence[str]]:
    found: Any = fields.get("metadata", {}) or {}
    if isinstance(found, str):  # some registries write JSON into a string
        return {"metadata": found[:TEXT_LIMIT]}, ["metadata is text; the standard wants a mapping of text to text"]
    if not isinstance(found, dict):
        raise InvalidSkill("SKILL.md: metadata must be a mapping")
    metadata = as_object(found)
    if len(metadata) > METADATA_LIMIT:
        raise InvalidSkill(f"SKILL.md: metadata must be at most {METADATA_LIMIT} keys, got {len(metadata)}")
    nested = [key for key, value in metadata.items() if not isinstance(value, str)]
    warnings = [f"metadata.{key[:40]} is nested; the standard wants a mapping of text to text" for key in nested]
    texts = {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for key, value in metadata.items()
    }
    return texts, warnings


def _read_tools(fields: Mapping[str, Any]) -> Sequence[str]:
    """Read a list, or text with blanks or commas between tools such as `Bash(git add:*)`."""
    found: Any = fields.get("allowed-tools", "")
    tools = _TOOL.findall(found) if isinstance(found, str) else as_list(found)
    if isinstance(found, dict) or not all(isinstance(tool, str) for tool in tools):
        raise InvalidSkill("SKILL.md: allowed-tools must be text or a list of text")
    if len(tools) > TOOLS_LIMIT:
        raise InvalidSkill(f"SKILL.md: allowed-tools must be at most {TOOLS_LIMIT} tools, got {len(tools)}")
    return tuple(tools)


def _key_warnings(fields: Mapping[str, Any]) -> Iterator[str]:
    for key in fields:
        if key not in KNOWN_KEYS:
            yield f"unknown key {key[:40]!r}; the standard has {', '.join(KNOWN_KEYS)}"


def _hermes_warnings(fields: Mapping[str, Any], source: str) -> Iterator[str]:
    if len(source) + len("---\n---\n") > _HERMES_READS:
        yield f"Hermes reads the first {_HERMES_READS:,} characters only, so it does not learn the description"
    for key in _HERMES_CONDITIONS:
        if fields.get(key):
            yield f"{CONDITION} {key}: {json.dumps(fields[key])[:80]}"


def _body_warnings(body: str) -> Iterator[str]:
    lines = body.count("\n") + 1
    if not body.strip():
        yield "the body is empty: an agent learns nothing but the description"
    elif lines > BODY_LINES_ADVISED:
        yield f"the body has {lines} lines; move details into references/ (at most {BODY_LINES_ADVISED} are advised)"
