"""`roost skills ...`: list, show, add, versions, publish, delete; attach, detach, updates, update; lint, rules."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from roost.cli.arguments import AgentName, optional_agent
from roost.cli.client.session import Data, ServerSession, drop_none, load_session
from roost.cli.client.transfer import count_bytes, progress_bar
from roost.cli.completion import complete_skills
from roost.cli.library.skill_files import (
    exit_unless_acknowledged,
    find_skill,
    find_skill_files,
    lint_skill,
    list_rules,
    parse_spellings,
    print_check,
    verdict_level,
)
from roost.cli.output.output import (
    ExitCode,
    Output,
    OutputFormat,
    Yes,
    confirm_change,
    error_console,
    exit_with_error,
    print_as_document,
    print_error,
    print_line,
    print_record,
    print_rows,
    secret_commands,
)
from roost.cli.storage.local_files import MultipartForm, form_fields
from roost.core.sanitize import sanitize_line

commands = typer.Typer()
Skill = Annotated[
    str, typer.Argument(metavar="SKILL", help="The skill's id, slug, name or CID.", autocompletion=complete_skills)
]
Acknowledge = Annotated[bool, typer.Option("--acknowledge", help="Accept a version that the check finds dangerous.")]
_COLUMNS = ("name", "slug", "version", "verdict", "createdAt", "skillId")
_VERSION_COLUMNS = ("version", "verdict", "files", "size", "createdAt", "skillCid")
_FIELDS = ("name", "slug", "version", "description", "skillCid", "skillId", "files", "size", "createdAt")
_PUBLISHED_FIELDS = ("slug", "version", "category", "tags", "authorName", "skillCid", "hubSkillId", "verdict")
_ATTACHED_COLUMNS = ("name", "slug", "version", "verdict", "synced", "loaded", "fault", "attachedAt", "skillId")
_UPDATE_COLUMNS = ("agent", "name", "version", "latestVersion", "verdict")


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
        form = MultipartForm(form_fields(fields), find_skill_files(Path(source)))
        with progress_bar("Uploading", int(form.headers["Content-Length"])) as advance:
            answer = server.send("/v0/skills", count_bytes(form, advance), form.headers)
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
    if not print_as_document(published, output):
        print_record({**published, "verdict": verdict_level(published)}, output, _PUBLISHED_FIELDS)


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


@commands.command("attach")
def attach_skills(
    agent: AgentName,
    skill: Annotated[
        list[str],
        typer.Argument(
            metavar="SKILL",
            help="Ids, slugs or names for the newest versions; or CIDs.",
            autocompletion=complete_skills,
        ),
    ],
    acknowledge: Acknowledge = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Give skills of the library to an agent, and show what it lacks to use them."""
    server = load_session(data)
    path = f"{server.agent_path(agent)}/skills"
    references = find_references(server, skill, acknowledge)
    with error_console.status("Attaching ..."):
        answer = server.call("POST", path, {"skillCids": references, "acknowledge": acknowledge})
    if print_as_document(answer["skills"], output):
        return
    print_line(f"Attached {answer['attached']}.")
    _print_states(server, agent, answer["skills"])


@commands.command("detach")
def detach_skill(agent: AgentName, skill: Skill, data: Data = None) -> None:
    """Take a skill from an agent; its files leave the workspace."""
    server = load_session(data)
    path = f"{server.agent_path(agent)}/skills/{find_skill(server, skill)['skillId']}"
    server.call("DELETE", path, not_found=f"{agent} does not have the skill {skill}.")
    print_line("Detached.")


@commands.command("updates")
def list_updates(
    agent: Annotated[str | None, optional_agent("all agents")] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Take the newest versions.")] = False,
    acknowledge: Acknowledge = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List skills of agents that have a newer version in the library.

    With --apply the agents take them. Exits with 1 if one is left out because it is dangerous.
    """
    server = load_session(data)
    agents = [server.find_agent(agent)] if agent else server.call("GET", "/v0/agents")["agents"]
    rows = [
        {"agent": one["name"], "agentId": one["agentId"], **update}
        for one in agents
        for update in server.call("GET", f"/v0/agents/{one['agentId']}/skills/updates")["updates"]
    ]
    print_rows(rows, _UPDATE_COLUMNS, output)
    if [row for row in rows if apply and not _apply_update(server, row, acknowledge)]:  # those that are left out
        raise typer.Exit(ExitCode.FAILED)


@commands.command("update")
def update_skill(
    agent: AgentName,
    skill: Skill,
    version: Annotated[str | None, typer.Option(help="Number or CID of a version (default: the newest).")] = None,
    acknowledge: Acknowledge = False,
    data: Data = None,
) -> None:
    """Replace an agent's version of a skill by a newer one."""
    server = load_session(data)
    path, skill_id = f"{server.agent_path(agent)}/skills", find_skill(server, skill)["skillId"]
    versions = server.call("GET", f"/v0/skills/{skill_id}/versions")["versions"]
    meant = parse_spellings(version) or {version} if version else {versions[0]["version"]}
    target = next((one for one in versions if meant & {one["version"], one["skillCid"]}), None)
    if target is None:
        exit_with_error(f"{skill} has no version {version}; `roost skills versions` shows all.", ExitCode.NOT_FOUND)
    exit_unless_acknowledged(target, acknowledge)
    body = drop_none({"skillCid": target["skillCid"] if version else None, "acknowledge": acknowledge})
    with error_console.status("Updating ..."):
        answer = server.call(
            "POST", f"{path}/{skill_id}/update", body, not_found=f"{agent} does not have the skill {skill}."
        )
    print_line(f"{answer['skill']['name']} {answer['previousVersion']} -> {answer['skill']['version']}")
    print_agent_skills(server, agent, {skill_id})


commands.command("lint")(lint_skill)
commands.command("rules")(list_rules)


def give_version(server: ServerSession, agent: str, skill: Mapping[str, Any], acknowledge: bool) -> None:
    """Attach a version of a skill to an agent, in place of an older one that it has."""
    path = f"{server.agent_path(agent)}/skills"
    attached = {row["skillId"]: row["skillCid"] for row in server.call("GET", path)["skills"]}
    body = {"acknowledge": acknowledge}
    if attached.get(skill["skillId"], skill["skillCid"]) == skill["skillCid"]:
        server.call("POST", path, {**body, "skillCids": [skill["skillCid"]]})
    else:
        server.call("POST", f"{path}/{skill['skillId']}/update", {**body, "skillCid": skill["skillCid"]})


def find_references(server: ServerSession, names: Sequence[str], acknowledge: bool) -> Sequence[str]:
    """Return CIDs and ids of skills of the library. Exits if there is none, or for a dangerous one."""
    references: list[str] = []
    for name in names:
        found = find_skill(server, name)
        exit_unless_acknowledged(found, acknowledge)
        references.append(found["skillCid"] if parse_spellings(name) else found["skillId"])
    return references


def list_agent_skills(server: ServerSession, agent: str) -> Sequence[Mapping[str, Any]]:
    """Return the skills of an agent, each with what the agent lacks."""
    return server.call("GET", f"{server.agent_path(agent)}/skills")["skills"]


def print_agent_skills(server: ServerSession, agent: str, skill_ids: Collection[str] | None = None) -> None:
    """Print where these skills of an agent are, or all, and what it lacks."""
    found = list_agent_skills(server, agent)
    _print_states(server, agent, [row for row in found if skill_ids is None or row["skillId"] in skill_ids])


def print_missing(server: ServerSession, agent: str, skills: Sequence[Mapping[str, Any]]) -> None:
    """Print what an agent lacks for its skills, and what adds it."""
    if not any(any(skill["missing"].values()) for skill in skills):
        return
    secrets = {secret["name"] for secret in server.call("GET", "/v0/secrets")["secrets"]}
    for skill in skills:
        for line in _describe_missing(skill, agent, secrets):
            print_line(line, error_console)


def _apply_update(server: ServerSession, row: Mapping[str, Any], acknowledge: bool) -> bool:
    """Update a skill as a row of updates says; return False for a dangerous one, which needs an acknowledgement."""
    name = row["name"]
    if row["verdict"] == "dangerous" and not acknowledge:
        print_error(
            f"{name} {row['latestVersion']} is dangerous and was left out. `roost skills show {row['latestCid']}` "
            f"shows why; `roost skills update {row['agentId']} {row['skillId']} --acknowledge` accepts it."
        )
        return False
    body = {"skillCid": row["latestCid"], "acknowledge": acknowledge}
    with error_console.status(f"Updating {name} ..."):
        server.call("POST", f"/v0/agents/{row['agentId']}/skills/{row['skillId']}/update", body)
    print_line(f"{row['agent']}: {name} {row['version']} -> {row['latestVersion']}", error_console)
    return True


def _print_states(server: ServerSession, agent: str, skills: Sequence[Mapping[str, Any]]) -> None:
    for skill in skills:
        print_line(f"{skill['name']} {skill['version']}: {_describe_state(skill)}")
    print_missing(server, agent, skills)


def _describe_state(skill: Mapping[str, Any]) -> str:
    if not skill["synced"]:
        return "the agent gets its files at its next start"
    if skill.get("fault"):
        return ("" if skill["loaded"] else "the engine does not load it: ") + sanitize_line(skill["fault"])
    if skill["loaded"] is False:
        return "its files are in the workspace; the engine does not list it yet"
    return "its files are in the workspace" + (", and the engine lists it" if skill["loaded"] else "")


def _describe_missing(skill: Mapping[str, Any], agent: str, secrets: Collection[str]) -> Iterator[str]:
    """Yield what the agent lacks, and below each what adds it."""
    name, missing = skill["name"], skill["missing"]
    for secret in missing["secrets"]:
        yield f"{name} lacks the secret {secret}"
        yield f"  {secret_commands(agent, secret, exists=secret in secrets)}"
    for program in missing["programs"] or ():
        yield f"{name} lacks the program {program}"
        yield "  Install it on the server's machine: agents have the programs in its /usr"
    for host in missing["hosts"]:
        yield f"{name} lacks the way to {host}"
        yield "  Allow it in the server's settings: `egress_allow_hosts`, `egress_deny_hosts`"


def _print_skill(skill: Mapping[str, Any], output: OutputFormat) -> None:
    print_record(skill, output, _FIELDS)
    if output is OutputFormat.TABLE:
        print_check(skill)


def _print_versions(skills: Sequence[Mapping[str, Any]], columns: Sequence[str], output: OutputFormat) -> None:
    """Print versions; the cell of a verdict is its level."""
    print_rows(({**skill, "verdict": verdict_level(skill)} for skill in skills), columns, output, skills)
