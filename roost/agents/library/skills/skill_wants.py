"""What a skill wants of the agent that it is attached to: secrets, programs and hosts. Pure.

Declared in the front matter of `SKILL.md`, in any of these forms:

| form | becomes |
|---|---|
| `metadata.openclaw.requires.env: [A]` | required secrets |
| `metadata.openclaw.primaryEnv: A` | an optional secret, unless `requires.env` has it |
| `metadata.openclaw.requires.bins: [git]` | programs |
| `metadata.roost.secrets: [A, {name: B, description: ..., required: false}]` | secrets, required by default |
| `metadata.roost.programs: [git]`, `metadata.roost.hosts: [api.example.org]` | programs, hosts |
| `metadata: {roost.secrets: "A B?", roost.programs: "git", roost.hosts: "api.example.org"}` | the same |
| `required_environment_variables: [{name: A, prompt: ...}]` (Hermes) | required secrets |
| `prerequisites: {env_vars: [A], commands: [git]}` (Hermes) | required secrets, programs |
| `.env.example` beside `SKILL.md`: `A=` below a comment | required secrets; optional if they have a value |

The form with dotted keys and text is the one that the standard allows; `?` marks an optional secret there.
`clawdbot` and `clawdis` are former names of `openclaw`. The first declaration of a secret wins; a later one adds a
missing description. Malformed declarations are warnings.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from roost.agents.setup.secrets.model import InvalidSecret, validate_secret_name
from roost.core.sanitize import sanitize_line
from roost.drivers.model.json_access import as_list, as_object, as_string, parse_json

ENV_EXAMPLE = ".env.example"
ENV_EXAMPLE_LIMIT = 64 * 1024
WANTS_LIMIT = 50
"""Maximum number of secrets, of programs and of hosts."""
DESCRIPTION_LIMIT = 500

_OPENCLAW_NAMES = ("openclaw", "clawdbot", "clawdis")
_SEPARATOR = re.compile(r"[\s,]+")
_PROGRAM = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")
_HOST = re.compile(
    r"(?=.{1,253}\Z)(?:\*\.)?(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?"
)
_ASSIGNMENT = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*+(.*)")


@dataclass(frozen=True)
class WantedSecret:
    """A secret that a skill reads from its environment."""

    name: str
    description: str = ""
    required: bool = True


@dataclass(frozen=True)
class SkillWants:
    """Requirements of a skill. hosts: names, or `*.` and a name for all names below it."""

    secrets: Sequence[WantedSecret] = ()
    programs: Sequence[str] = ()
    hosts: Sequence[str] = ()


def read_wants(fields: Mapping[str, Any], env_example: bytes | None = None) -> tuple[SkillWants, Sequence[str]]:
    """Return what the front matter and `.env.example` declare, with warnings about malformed declarations."""
    collected = _WantsCollector()
    metadata = _read_object(fields.get("metadata"))
    for name in _OPENCLAW_NAMES:
        _collect_openclaw(_read_object(metadata.get(name)), collected)
    _collect_roost(metadata, collected)
    _collect_hermes(fields, collected)
    if env_example is not None:
        _collect_env_example(env_example, collected)
    return collected.finish()


class _WantsCollector:
    """Distinct valid wants in the order of their declaration."""

    def __init__(self) -> None:
        self._secrets: dict[str, WantedSecret] = {}
        self._programs: dict[str, None] = {}
        self._hosts: dict[str, None] = {}
        self._warnings: list[str] = []

    def add_secret(self, name: str, description: str = "", *, required: bool = True) -> None:
        try:
            validate_secret_name(name)
        except InvalidSecret as problem:
            self._warnings.append(f"wanted secret {name[:40]!r} is ignored: {problem.message}")
            return
        known = self._secrets.get(name)
        description = sanitize_line(" ".join(description.split()))[:DESCRIPTION_LIMIT]
        if known is None:
            self._secrets[name] = WantedSecret(name, description, required)
        elif not known.description:
            self._secrets[name] = replace(known, description=description)

    def add_programs(self, names: Iterable[str]) -> None:
        for name in names:
            if _PROGRAM.fullmatch(name):
                self._programs[name] = None
            else:
                self._warnings.append(f"wanted program {name[:40]!r} is ignored: not the name of a program")

    def add_hosts(self, names: Iterable[str]) -> None:
        for name in names:
            if _HOST.fullmatch(name.lower()):
                self._hosts[name.lower()] = None
            else:
                self._warnings.append(f"wanted host {name[:40]!r} is ignored: not the name of a host")

    def finish(self) -> tuple[SkillWants, Sequence[str]]:
        groups = (tuple(self._secrets.values()), tuple(self._programs), tuple(self._hosts))
        if any(len(group) > WANTS_LIMIT for group in groups):
            self._warnings.append(f"only the first {WANTS_LIMIT} wanted secrets, programs and hosts count")
        secrets, programs, hosts = groups
        wants = SkillWants(secrets[:WANTS_LIMIT], programs[:WANTS_LIMIT], hosts[:WANTS_LIMIT])
        return wants, tuple(self._warnings[:WANTS_LIMIT])


def _collect_openclaw(declared: Mapping[str, Any], collected: _WantsCollector) -> None:
    requires = _read_object(declared.get("requires"))
    for name in _read_names(requires.get("env")):
        collected.add_secret(name)
    if primary := as_string(declared.get("primaryEnv")):  # camel case: OpenClaw's own spelling
        collected.add_secret(primary, required=False)
    collected.add_programs(_read_names(requires.get("bins")))


def _collect_roost(metadata: Mapping[str, Any], collected: _WantsCollector) -> None:
    nested = _read_object(metadata.get("roost"))
    for one in as_list(nested.get("secrets")):
        if isinstance(one, str):
            collected.add_secret(one)
        else:
            fields = as_object(one)
            required = str(fields.get("required", "")).lower() not in ("false", "no")
            collected.add_secret(as_string(fields.get("name")), as_string(fields.get("description")), required=required)
    for name in _read_names(metadata.get("roost.secrets")):
        collected.add_secret(name.removesuffix("?"), required=not name.endswith("?"))
    for programs in (nested.get("programs"), metadata.get("roost.programs")):
        collected.add_programs(_read_names(programs))
    for hosts in (nested.get("hosts"), metadata.get("roost.hosts")):
        collected.add_hosts(_read_names(hosts))


def _collect_hermes(fields: Mapping[str, Any], collected: _WantsCollector) -> None:
    for one in as_list(fields.get("required_environment_variables")):
        if isinstance(one, str):
            collected.add_secret(one)
        else:
            variable = as_object(one)
            collected.add_secret(as_string(variable.get("name")), as_string(variable.get("prompt")))
    prerequisites = _read_object(fields.get("prerequisites"))
    for name in _read_names(prerequisites.get("env_vars")):
        collected.add_secret(name)
    collected.add_programs(_read_names(prerequisites.get("commands")))


def _collect_env_example(content: bytes, collected: _WantsCollector) -> None:
    """Read the assignments of a `.env.example`; the comments directly above one describe it."""
    comments: list[str] = []
    for line in map(str.strip, content[:ENV_EXAMPLE_LIMIT].decode("utf-8", "replace").splitlines()):
        if line.startswith("#"):
            comments.append(line.lstrip("# "))
            continue
        if found := _ASSIGNMENT.fullmatch(line):
            value = found[2].partition(" #")[0].strip().strip("\"'")
            collected.add_secret(found[1], " ".join(comments), required=not value)
        comments = []


def _read_object(value: Any) -> Mapping[str, Any]:
    """Return a mapping, also of one that is written as JSON in a text."""
    return as_object(parse_json(value) if isinstance(value, str) else value)


def _read_names(value: Any) -> Sequence[str]:
    """Return a list's texts, or the words of a text."""
    if isinstance(value, str):
        return [name for name in _SEPARATOR.split(value) if name]
    return [name for name in as_list(value) if isinstance(name, str)]
