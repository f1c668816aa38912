"""Skills as the commands of `roost skills` and `roost hub` find and print them."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console

from roost.cli.client.session import ServerSession, path_segment
from roost.cli.output.output import ExitCode, console, error_console, exit_with_error, print_line
from roost.core.sanitize import sanitize_line
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.errors import InvalidCid

_DANGEROUS = "dangerous"
UNCHECKED = "unchecked"


def find_skill(server: ServerSession, name: str) -> Mapping[str, Any]:
    """Return the newest version of the skill with that id, slug or name, or the version with that CID.

    Exits if there is none, or several skills have the name.
    """
    hint = f"`roost hub install {name}` adds it from the hub" if "/" in name else "`roost skills list` shows all"
    unknown = f"Your library has no skill {name!r}; {hint}."
    if spellings := parse_spellings(name):
        versions = server.call("GET", f"/v0/skills/{path_segment(name)}/versions", not_found=unknown)["versions"]
        return next(version for version in versions if version["skillCid"] in spellings)
    skills = server.call("GET", "/v0/skills")["skills"]
    found = [skill for skill in skills if name in (skill["skillId"], skill["slug"])]
    found = found or [skill for skill in skills if skill["name"] == name]
    if not found:
        exit_with_error(unknown, ExitCode.NOT_FOUND)
    if len(found) > 1:
        exit_with_error(f"{len(found)} skills have the name {name!r}: use the id or the slug.", ExitCode.USAGE)
    return found[0]


def parse_spellings(text: str) -> frozenset[str]:
    """Return all spellings of a CID; none for text that is no CID."""
    try:
        return frozenset(Cid.parse_spellings(text))
    except InvalidCid:
        return frozenset()


def verdict_level(skill: Mapping[str, Any]) -> str:
    """Return the level of the verdict; skills of other servers have none until they are looked at."""
    return skill["verdict"]["level"] if skill["verdict"] else UNCHECKED


def print_check(skill: Mapping[str, Any]) -> None:
    """Print what the check of a skill found: warnings, findings, wants, and the verdict."""
    for warning in skill.get("warnings", ()):
        print_line(f"Warning: {warning}")
    print_findings(skill)
    if reason := skill.get("acknowledgement"):
        print_line(f"Its publisher's reason for publishing it: {sanitize_line(reason)}")
    for want in _describe_wants(skill):
        print_line(want)
    print_line(f"{skill['name']}: {verdict_level(skill)}")


def print_findings(skill: Mapping[str, Any], to: Console = console) -> None:
    """Print one line for each finding: where it is, and its text."""
    for finding in skill["verdict"]["findings"] if skill["verdict"] else ():
        place = f"{finding['path']}:{finding['line']}"
        print_line(f"{place}: {finding['level']} ({finding['rule']}): {finding['excerpt']}", to)


def exit_unless_acknowledged(skill: Mapping[str, Any], acknowledged: bool, *, are_findings_shown: bool = False) -> None:
    """Exit with the findings of a dangerous version, unless they are acknowledged."""
    if verdict_level(skill) != _DANGEROUS or acknowledged:
        return
    if not are_findings_shown:
        print_findings(skill, error_console)
    exit_with_error(
        f"{skill['name']} {skill['version']} is dangerous: read the lines above. `--acknowledge` accepts all of them."
    )


def _describe_wants(skill: Mapping[str, Any]) -> Iterator[str]:
    for secret in skill["envVars"]:
        needed = "" if secret["required"] else " (optional)"
        about = f": {secret['description']}" if secret["description"] else ""
        yield f"Wants the secret {secret['name']}{needed}{about}"
    wants = skill["wants"] or {"programs": (), "hosts": ()}
    for program in wants["programs"]:
        yield f"Wants the program {program}"
    for host in wants["hosts"]:
        yield f"Wants to reach {host}"
