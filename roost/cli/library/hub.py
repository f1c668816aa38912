"""`roost hub ...`: search, show, install, withdraw."""

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlencode

import typer

from roost.cli.client.session import Data, ServerSession, drop_none, load_session, path_segment
from roost.cli.library.skill_files import exit_unless_acknowledged, print_check, verdict_level
from roost.cli.library.skills import Acknowledge, give_version, print_agent_skills
from roost.cli.output.output import (
    Output,
    OutputFormat,
    Yes,
    confirm_change,
    error_console,
    print_as_document,
    print_line,
    print_record,
    print_rows,
)
from roost.core.sanitize import sanitize_lines

commands = typer.Typer()
_Slug = Annotated[str, typer.Argument(metavar="SLUG", help="`@owner/name`, a name, or an id of `roost hub search`.")]
_Version = Annotated[str | None, typer.Option(help="Number or CID of a version (default: the newest).")]
_COLUMNS = ("slug", "version", "verdict", "bundled", "category", "installCount", "description")
_FIELDS = "slug version description authorName bundled category tags license installCount source skillCid".split()
_VERSION_COLUMNS = ("version", "verdict", "createdAt", "changelog", "skillCid")
_PAGE_SIZE = 100


@commands.command()
def search(
    words: Annotated[list[str] | None, typer.Argument(metavar="WORD", help="Words that all occur.")] = None,
    category: Annotated[str | None, typer.Option(help="Only skills of this category.")] = None,
    sort: Annotated[str | None, typer.Option(help="`popular` (default), `newest` or `name`.")] = None,
    featured: Annotated[bool, typer.Option("--featured", help="Only skills that the operator features.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of results.")] = _PAGE_SIZE,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List published skills: of this server, and of the other servers that it is set to search."""
    query = {"q": " ".join(words or ()) or None, "category": category, "sort": sort}
    found = _fetch_skills(load_session(data), drop_none(query) | ({"featured": "true"} if featured else {}), limit)
    rows = ({**skill, "slug": _reference(skill), "verdict": verdict_level(skill)} for skill in found)
    print_rows(rows, _COLUMNS, output, found)


@commands.command()
def show(slug: _Slug, version: _Version = None, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Show a published skill before you install it: what the check found, what it wants, its versions and its text."""
    found = _fetch_skill(load_session(data), slug, version)
    if print_as_document(found, output):
        return
    _print_skill(found)
    if found["versions"]:
        print_line("")
        print_rows(found["versions"], _VERSION_COLUMNS, output)
    print_line(f"\n{sanitize_lines(found['longDescription'])}")


@commands.command()
def install(
    slug: _Slug,
    version: _Version = None,
    agent: Annotated[str | None, typer.Option(help="Give it to the agent with this id or name, too.")] = None,
    acknowledge: Acknowledge = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Install a published skill into your library, after showing what the check found."""
    server = load_session(data)
    if agent is not None:
        server.find_agent(agent)  # before anything is installed
    found = _fetch_skill(server, slug, version)
    if output is OutputFormat.TABLE:
        _print_skill(found)
    exit_unless_acknowledged(found, acknowledge, are_findings_shown=output is OutputFormat.TABLE)
    body = {"version": found["skillCid"] or found["version"], "acknowledge": acknowledge}
    with error_console.status("Installing ..."):
        path = f"/v0/hub/{path_segment(found['hubSkillId'])}/install"
        skill = server.call("POST", path, drop_none(body))["skill"]
    if agent is not None:
        with error_console.status("Attaching ..."):
            give_version(server, agent, skill, acknowledge)
    if print_as_document(skill, output):
        return
    print_line(f"Installed {skill['name']} {skill['version']}.")
    if agent is not None:
        print_agent_skills(server, agent, {skill["skillId"]})


@commands.command()
def withdraw(slug: _Slug, yes: Yes = False, data: Data = None) -> None:
    """Withdraw a skill of your own from the hub; libraries that have it keep it."""
    server = load_session(data)
    found = _fetch_skill(server, slug, None)
    confirm_change(f"Withdraw {found['slug']} with all its versions?", yes)
    print_line(server.call("DELETE", f"/v0/hub/{path_segment(found['hubSkillId'])}")["message"])


def _fetch_skills(server: ServerSession, query: Mapping[str, str], limit: int) -> list[dict[str, Any]]:
    """Fetch up to `limit` skills of this server; the first page also has those of others."""
    found: list[dict[str, Any]] = []
    left, cursor = limit, None
    while left > 0:
        page = {**query, "limit": str(min(left, _PAGE_SIZE))} | ({"cursor": cursor} if cursor else {})
        answer = server.call("GET", f"/v0/hub?{urlencode(page)}")
        found += answer["skills"]
        left, cursor = left - _PAGE_SIZE, answer["nextCursor"]
        if cursor is None:
            break
    return found


def _fetch_skill(server: ServerSession, slug: str, version: str | None) -> dict[str, Any]:
    path = "/v0/hub/" + "/".join(path_segment(part) for part in slug.split("/"))
    unknown = None if version else f"The hub has no skill {slug!r}; `roost hub search` finds skills."
    query = f"?{urlencode({'version': version})}" if version else ""
    with error_console.status("Fetching ..."):
        return server.call("GET", path + query, not_found=unknown)["skill"]


def _print_skill(skill: Mapping[str, Any]) -> None:
    print_record({**skill, "slug": _reference(skill)}, OutputFormat.TABLE, _FIELDS)
    print_check(skill)


def _reference(skill: Mapping[str, Any]) -> str:
    """Return what commands take: the id for a skill of another server, whose slug is for libraries."""
    return skill["hubSkillId"] if skill["source"] else skill["slug"]
