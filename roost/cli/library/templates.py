"""`roost templates ...`: list, show, submit, update, archive, check, validate, refs."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roost.cli.client.session import Data, ServerSession, drop_none, load_session, path_segment
from roost.cli.completion import complete_templates
from roost.cli.output.output import (
    ExitCode,
    Output,
    OutputFormat,
    Yes,
    confirm_change,
    print_as_document,
    print_document,
    print_line,
    print_record,
    print_rows,
)
from roost.core.sanitize import sanitize_lines

if TYPE_CHECKING:
    from roost.agents.library.templates.model import InspectedTemplate

commands = typer.Typer()
_Slug = Annotated[
    str,
    typer.Argument(metavar="SLUG", help="The template's slug.", parser=path_segment, autocompletion=complete_templates),
]
_GitUrl = Annotated[str, typer.Argument(metavar="URL", help="https address of a public Git repository.")]
_Ref = Annotated[str | None, typer.Option(help="Branch, tag or commit (default: the default branch).")]
_Path = Annotated[str | None, typer.Option(help="Folder of the template in the repository (default: its root).")]
_COLUMNS = ("slug", "name", "category", "authorName", "version", "status", "description")
_PAGE_SIZE = 100
_FETCH_SECONDS = 300.0


@commands.command("list")
def list_templates(
    mine: Annotated[bool, typer.Option("--mine", help="Only your own, drafts included.")] = False,
    search: Annotated[str | None, typer.Option(help="Text in slug, name or description.")] = None,
    category: Annotated[str | None, typer.Option(help="Category.")] = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List the published templates of the server, newest first."""
    server = load_session(data)
    query = {"q": search, "category": category, "limit": str(_PAGE_SIZE)}
    path = "/v0/templates" if mine else "/v0/public-templates"
    given = {key: value for key, value in query.items() if value}
    print_rows(list(server.fetch_pages(path, "templates", given)), _COLUMNS, output)


@commands.command()
def show(template: _Slug, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Show a template: what it is, what it asks for, and its README."""
    found = load_session(data).call("GET", f"/v0/templates/{template}")["template"]
    print_record(found, output, (*_COLUMNS, "engine", "gitUrl", "files", "snapshotCid"))
    if output is not OutputFormat.TABLE:
        return
    for secret in found["requiredSecrets"]:
        needed = "required" if secret["required"] else "optional"
        print_line(f"Secret {secret['name']} ({needed}): {secret['description']}")
    print_line(f"\n{sanitize_lines(found['readme'])}")


@commands.command()
def submit(
    url: _GitUrl,
    ref: _Ref = None,
    path: _Path = None,
    slug: Annotated[str | None, typer.Option(help="Slug (default: that of the manifest).")] = None,
    draft: Annotated[bool, typer.Option("--draft", help="Visible to you alone.")] = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Fetch a repository and publish what it holds as a template."""
    body = {"gitUrl": url, "ref": ref, "path": path, "slugOverride": slug, "public": not draft}
    answer = load_session(data).call("POST", "/v0/templates", drop_none(body), timeout_seconds=_FETCH_SECONDS)
    print_record(answer["template"], output, (*_COLUMNS, "gitCommitSha"))


@commands.command()
def update(
    template: _Slug,
    ref: Annotated[str | None, typer.Option(help="Another branch, tag or commit.")] = None,
    publish: Annotated[bool | None, typer.Option("--publish/--draft", help="Show it to everyone, or not.")] = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Fetch a template's repository again; what it holds now is the next version."""
    server = load_session(data)
    path = f"/v0/templates/{_find_id(server, template)}"
    answer = server.call("PUT", path, drop_none({"ref": ref, "public": publish}), timeout_seconds=_FETCH_SECONDS)
    print_record(answer["template"], output, (*_COLUMNS, "gitCommitSha"))


@commands.command()
def archive(template: _Slug, yes: Yes = False, data: Data = None) -> None:
    """Archive a template, which hides it; agents that were made from it stay."""
    server = load_session(data)
    template_id = _find_id(server, template)
    confirm_change(f"Archive the template {template}?", yes)
    print_line(server.call("DELETE", f"/v0/templates/{template_id}")["message"])


@commands.command()
def check(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="Folder with manifest.json, README.md and workspace/.")],
    output: Output = OutputFormat.TABLE,
) -> None:
    """Check a template on this machine as a submission would, without a server. Exits with 2 if it is not valid."""
    found = asyncio.run(_inspect(path))
    if output is not OutputFormat.TABLE:
        faults = {
            name: [{"path": fault.path, "message": fault.message} for fault in faults]
            for name, faults in (("errors", found.errors), ("warnings", found.warnings))
        }
        print_document({"valid": not found.errors, **faults, "files": [file.path for file in found.files]}, output)
    else:
        for name, faults in (("Error", found.errors), ("Warning", found.warnings)):
            for fault in faults:
                print_line(f"{name}: {f'{fault.path}: ' if fault.path else ''}{fault.message}")
        if not found.errors:
            print_line(f"The template is valid; its workspace has {len(found.files)} files.")
    if found.errors:
        raise typer.Exit(ExitCode.USAGE)


@commands.command()
def validate(
    url: _GitUrl, ref: _Ref = None, path: _Path = None, data: Data = None, output: Output = OutputFormat.TABLE
) -> None:
    """Check on the server whether a repository holds a valid template. Nothing is stored; exits with 2 if not."""
    body = drop_none({"gitUrl": url, "ref": ref, "path": path})
    found = load_session(data).call("POST", "/v0/templates/validate", body, timeout_seconds=_FETCH_SECONDS)
    if print_as_document(found, output):
        return
    for fault in found["warnings"]:
        where = f"{fault['path']}: " if fault["path"] else ""
        print_line(f"Warning: {where}{fault['message']}")
    print_line(f"The template is valid at {found['commitSha']}; its workspace has {len(found['files'])} files.")


@commands.command("refs")
def list_refs(url: _GitUrl, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List the branches and tags of a public Git repository, as the server sees it."""
    found = load_session(data).call("POST", "/v0/templates/refs", {"gitUrl": url}, timeout_seconds=_FETCH_SECONDS)
    if print_as_document(found, output):
        return
    rows = [{**ref, "kind": kind} for kind, field in (("branch", "branches"), ("tag", "tags")) for ref in found[field]]
    for row in rows:
        row["default"] = "yes" if row["kind"] == "branch" and row["name"] == found["defaultBranch"] else ""
    print_rows(rows, ("kind", "name", "commitSha", "default"), output)


async def _inspect(path: Path) -> "InspectedTemplate":
    from roost.agents.library.templates.inspection import TemplateInspection  # slow to import
    from roost.app.drivers import create_local_repository

    async with create_local_repository(path).fetch("", "", None) as commit:
        return await TemplateInspection(commit, None).run()


def _find_id(server: ServerSession, slug: str) -> str:
    return server.call("GET", f"/v0/templates/{slug}")["template"]["templateId"]
