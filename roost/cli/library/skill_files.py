"""Files of a skill on this machine: read for the check of `roost skills lint`, or sent as a form."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roost.cli.library.skill_records import print_check
from roost.cli.output.output import ExitCode, Output, OutputFormat, exit_with_error, print_document, print_rows
from roost.cli.storage.upload_form import LocalFile
from roost.core.problem import InvalidInput

if TYPE_CHECKING:
    from roost.agents.library.skills.bundle import Bundle


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
    if output is not OutputFormat.TABLE:
        print_document({"valid": True, **found}, output)
    else:
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
    if _is_archive(path):
        with path.open("rb") as archive:
            return read_zip(archive.read(ARCHIVE_LIMIT + 1))
    return read_files([("SKILL.md", _read_limited(path))])


def find_skill_files(path: Path) -> Sequence[LocalFile]:
    """Return the files of a folder, or a zip archive, that can be a skill.

    Raises InvalidBundle before anything is sent; exits for another file.
    """
    if path.is_file() and not _is_archive(path):
        exit_with_error(f"{path} is no folder and no zip archive; a skill is the folder of a SKILL.md.", ExitCode.USAGE)
    read_bundle(path)
    return [LocalFile(path, path.name, path.stat().st_size)] if path.is_file() else list(_scan_skill(path))


def _is_archive(path: Path) -> bool:
    return path.suffix == ".zip"


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
