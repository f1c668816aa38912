"""`roost skills attach|detach|updates|update`: skills of agents."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from roost.cli.arguments import AgentName
from roost.cli.client.session import Data, ServerSession, drop_none, load_session
from roost.cli.completion import complete_agents, complete_skills
from roost.cli.library.skill_records import exit_unless_acknowledged, find_skill, parse_spellings
from roost.cli.output.output import (
    ExitCode,
    Output,
    OutputFormat,
    error_console,
    exit_with_error,
    print_document,
    print_error,
    print_line,
    print_rows,
    secret_commands,
)
from roost.core.sanitize import sanitize_line

Skill = Annotated[
    str, typer.Argument(metavar="SKILL", help="The skill's id, slug, name or CID.", autocompletion=complete_skills)
]
Acknowledge = Annotated[bool, typer.Option("--acknowledge", help="Accept a version that the check finds dangerous.")]
_COLUMNS = ("agent", "name", "version", "latestVersion", "verdict")


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
    if output is not OutputFormat.TABLE:
        print_document(answer["skills"], output)
        return
    print_line(f"Attached {answer['attached']}.")
    _print_state(server, agent, answer["skills"])


def detach_skill(agent: AgentName, skill: Skill, data: Data = None) -> None:
    """Take a skill from an agent; its files leave the workspace."""
    server = load_session(data)
    path = f"{server.agent_path(agent)}/skills/{find_skill(server, skill)['skillId']}"
    server.call("DELETE", path, not_found=f"{agent} does not have the skill {skill}.")
    print_line("Detached.")


def list_updates(
    agent: Annotated[
        str | None,
        typer.Argument(
            metavar="AGENT", help="The agent's id or name (default: all agents).", autocompletion=complete_agents
        ),
    ] = None,
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
    print_rows(rows, _COLUMNS, output)
    left_out = [row for row in rows if apply and not _apply_update(server, row, acknowledge)]
    if left_out:
        raise typer.Exit(ExitCode.FAILED)


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
    _print_state(server, agent, [row for row in found if skill_ids is None or row["skillId"] in skill_ids])


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


def _print_state(server: ServerSession, agent: str, skills: Sequence[Mapping[str, Any]]) -> None:
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
