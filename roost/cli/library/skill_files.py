"""Skills as commands find, check and print them: records of the library, and files of this machine."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from roost.cli.client.session import ServerSession, path_segment
from roost.cli.output.output import (
    ExitCode,
    Output,
    OutputFormat,
    console,
    error_console,
    exit_with_error,
    print_as_document,
    print_document,
    print_line,
    print_rows,
)
from roost.cli.storage.local_files import LocalFile
from roost.core.problem import InvalidInput
from roost.core.sanitize import sanitize_line
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.errors import InvalidCid

if TYPE_CHECKING:
    from roost.agents.library.skills.bundle import Bundle


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


def lint_skill(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A skill: a folder, a zip archive, or its SKILL.md.")],
    output: Output = OutputFormat.TABLE,
) -> None:
    """Check a skill on this machine: errors, warnings, wants, verdict.

    Exits with 1 if the skill is invalid or dangerous.
    """
    from roost.agents.library.skills.skill_file import parse_bundle
    from roost.agents.library.skills.verdict import VerdictLevel, check_bundle

    try:
        bundle = read_bundle(path)
        skill = parse_bundle(bundle)
    except InvalidInput as problem:
        if output is not OutputFormat.TABLE:
            print_document({"valid": False, "errors": [problem.message]}, output)
            raise typer.Exit(ExitCode.FAILED) from None
        exit_with_error(problem.message)
    folder = path.resolve() if path.is_dir() else path.resolve().parent
    warnings = [f"SKILL.md: {warning}" for warning in skill.warnings]
    if path.suffix != ".zip" and folder.name != skill.name:
        warnings.append(f"SKILL.md: the name is {skill.name}, but its folder is {folder.name}")
    wants, verdict = asdict(skill.wants), check_bundle(bundle)
    found = {"name": skill.name, "warnings": warnings, "wants": wants, "verdict": asdict(verdict)}
    if not print_as_document({"valid": True, **found}, output):
        print_check({**found, "envVars": wants["secrets"]})
    if verdict.level is VerdictLevel.DANGEROUS:
        raise typer.Exit(ExitCode.FAILED)


def list_rules(output: Output = OutputFormat.TABLE) -> None:
    """List the rules that give skills their verdict."""
    from roost.agents.library.skills.verdict.rules import RULES

    rows = [{"rule": rule.id, "level": rule.level.value, "finds": rule.description} for rule in RULES]
    print_rows(rows, ("rule", "level", "finds"), output)


def read_bundle(path: Path) -> "Bundle":
    """Read a folder, a zip archive or a file that is a whole skill. Raises InvalidBundle; exits without such a path."""
    from roost.agents.library.skills.bundle import ARCHIVE_LIMIT, read_files, read_zip

    if path.is_dir():
        return read_files((file.name, _read_limited(file.path)) for file in _scan_skill(path))
    if not path.is_file():
        exit_with_error(f"{path} does not exist, or is no file and no folder.", ExitCode.USAGE)
    if path.suffix == ".zip":
        with path.open("rb") as archive:
            return read_zip(archive.read(ARCHIVE_LIMIT + 1))
    return read_files([("SKILL.md", _read_limited(path))])


def find_skill_files(path: Path) -> Sequence[LocalFile]:
    """Return the files of a folder, or a zip archive, that can be a skill.

    Raises InvalidBundle before anything is sent; exits for another file.
    """
    if path.is_file() and path.suffix != ".zip":
        exit_with_error(f"{path} is no folder and no zip archive; a skill is the folder of a SKILL.md.", ExitCode.USAGE)
    read_bundle(path)
    return [LocalFile(path, path.name, path.stat().st_size)] if path.is_file() else list(_scan_skill(path))


def _scan_skill(folder: Path) -> Iterator[LocalFile]:
    """Yield the files of a folder, named by their path in it; the reader stops at its limits."""
    from roost.agents.library.skills.errors import InvalidBundle

    for root, folders, names in os.walk(folder):
        here = Path(root)
        for name in sorted(names + [name for name in folders if (here / name).is_symlink()]):
            file = here / name
            relative = file.relative_to(folder).as_posix()
            if file.is_symlink() or not file.is_file():
                raise InvalidBundle(f"{relative!r} is a link or a special file")
            yield LocalFile(file, relative, file.stat().st_size)


def _read_limited(path: Path) -> bytes:
    """Read one byte more than a skill may have, so that its reader refuses a larger file."""
    from roost.agents.library.skills.bundle import BYTES_LIMIT

    with path.open("rb") as file:
        return file.read(BYTES_LIMIT + 1)
