"""`roost skills ...`: list, show, add, versions, publish, delete; attach, detach, updates, update; lint, rules."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from roost.cli.client.session import Data, ServerSession, drop_none, load_session
from roost.cli.client.transfer import count_bytes, progress_bar
from roost.cli.library.agent_skills import (
    Skill,
    attach_skills,
    detach_skill,
    list_agent_skills,
    list_updates,
    print_missing,
    update_skill,
)
from roost.cli.library.skill_files import find_skill_files, lint_skill, list_rules
from roost.cli.library.skill_records import find_skill, parse_spellings, print_check, verdict_level
from roost.cli.output.output import (
    ExitCode,
    Output,
    OutputFormat,
    Yes,
    confirm_change,
    exit_with_error,
    print_line,
    print_record,
    print_rows,
)
from roost.cli.storage.upload_form import MultipartForm, form_fields

commands = typer.Typer()
_COLUMNS = ("name", "slug", "version", "verdict", "createdAt", "skillId")
_VERSION_COLUMNS = ("version", "verdict", "files", "size", "createdAt", "skillCid")
_FIELDS = ("name", "slug", "version", "description", "skillCid", "skillId", "files", "size", "createdAt")
_PUBLISHED_FIELDS = ("slug", "version", "category", "tags", "authorName", "skillCid", "hubSkillId", "verdict")
_ATTACHED_COLUMNS = ("name", "slug", "version", "verdict", "synced", "loaded", "fault", "attachedAt", "skillId")


@commands.command("list")
def list_skills(
    agent: Annotated[str | None, typer.Option(help="Only skills of the agent with this id or name.")] = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List your skills with their newest versions, or those of one agent with what it lacks for them."""
    server = load_session(data)
    if agent is not None:
        attached = list_agent_skills(server, agent)
        print_rows(attached, _ATTACHED_COLUMNS, output)
        if output is OutputFormat.TABLE:
            print_missing(server, agent, attached)
        return
    _print_versions(server.call("GET", "/v0/skills")["skills"], _COLUMNS, output)


@commands.command()
def show(skill: Skill, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Show a skill: its newest version, or that of a CID, and what the check found."""
    _print_skill(find_skill(load_session(data), skill), output)


@commands.command()
def add(
    source: Annotated[
        str, typer.Argument(metavar="PATH|CID", help="A folder, a zip archive, or a stored folder's CID.")
    ],
    version: Annotated[
        str | None, typer.Option(help="Its number (default: that of SKILL.md, or the next patch).")
    ] = None,
    slug: Annotated[str | None, typer.Option(metavar="@OWNER/NAME", help="Tells skills of one name apart.")] = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Add a skill to your library, or a version to the skill with its name."""
    server = load_session(data)
    fields = {"version": version, "slug": slug}
    if source and Path(source).exists():
        answer = _send_files(server, Path(source), fields)
    elif parse_spellings(source):
        answer = server.call("POST", "/v0/skills", drop_none({"skillCid": source, **fields}))
    else:
        exit_with_error(f"{source!r} does not exist, and is no CID.", ExitCode.USAGE)
    _print_skill(answer["skill"], output)


@commands.command()
def versions(skill: Skill, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List the versions of a skill, newest first."""
    server = load_session(data)
    skill_id = find_skill(server, skill)["skillId"]
    _print_versions(server.call("GET", f"/v0/skills/{skill_id}/versions")["versions"], _VERSION_COLUMNS, output)


@commands.command()
def publish(
    skill: Skill,
    version: Annotated[str | None, typer.Option(help="Number or CID of a version (default: the newest).")] = None,
    category: Annotated[str | None, typer.Option(help="Category in the hub.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Tag in the hub; can be repeated, replaces all tags.")] = None,
    changelog: Annotated[str | None, typer.Option(help="What changed in this version.")] = None,
    acknowledge: Annotated[
        str | None, typer.Option(metavar="REASON", help="Publish a dangerous skill; installers see the reason.")
    ] = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Publish a version in the hub, for all who use this server; `roost hub withdraw` takes the skill back."""
    server = load_session(data)
    body = {"version": version, "category": category, "tags": tag, "changelog": changelog}
    body["acknowledgement"] = acknowledge
    path = f"/v0/skills/{find_skill(server, skill)['skillId']}/publish"
    published = server.call("POST", path, drop_none(body))["skill"]
    shown = {**published, "verdict": verdict_level(published)}
    print_record(shown, output, _PUBLISHED_FIELDS, published)


@commands.command()
def delete(skill: Skill, yes: Yes = False, data: Data = None) -> None:
    """Delete a skill with all its versions, or the version with a CID, from your library."""
    server = load_session(data)
    found = find_skill(server, skill)
    is_version = bool(parse_spellings(skill))
    what = f"version {found['version']} of {found['name']}" if is_version else f"{found['name']} with all its versions"
    confirm_change(f"Delete {what}?", yes)
    reference = found["skillCid"] if is_version else found["skillId"]
    print_line(server.call("DELETE", f"/v0/skills/{reference}")["message"])


commands.command("attach")(attach_skills)
commands.command("detach")(detach_skill)
commands.command("updates")(list_updates)
commands.command("update")(update_skill)
commands.command("lint")(lint_skill)
commands.command("rules")(list_rules)


def _send_files(server: ServerSession, path: Path, fields: Mapping[str, str | None]) -> Any:
    form = MultipartForm(form_fields(fields), find_skill_files(path))
    with progress_bar("Uploading", int(form.headers["Content-Length"])) as advance:
        return server.send("/v0/skills", count_bytes(form, advance), form.headers)


def _print_skill(skill: Mapping[str, Any], output: OutputFormat) -> None:
    print_record(skill, output, _FIELDS)
    if output is OutputFormat.TABLE:
        print_check(skill)


def _print_versions(skills: Sequence[Mapping[str, Any]], columns: Sequence[str], output: OutputFormat) -> None:
    """Print versions; the cell of a verdict is its level."""
    print_rows([{**skill, "verdict": verdict_level(skill)} for skill in skills], columns, output, skills)
