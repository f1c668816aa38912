"""`roost agents ...`: the verbs of agents, and an agent as one file."""

import shlex
import sys
import webbrowser
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlencode

import typer

from roost.cli.agents.execute import exec_command
from roost.cli.agents.logs import print_logs
from roost.cli.agents.shell import open_shell
from roost.cli.agents.snapshots import find_snapshot, take_snapshot
from roost.cli.arguments import AgentName, PassThroughCommand
from roost.cli.client.session import (
    Data,
    ServerSession,
    connection_errors,
    drop_none,
    exit_with_response,
    load_session,
    open_http_client,
)
from roost.cli.client.transfer import count_bytes, progress_bar, save_chunks
from roost.cli.completion import complete_templates
from roost.cli.fleet.commands import print_fleet
from roost.cli.library.skills import Acknowledge, find_references, print_agent_skills
from roost.cli.output.output import (
    ExitCode,
    FleetOutput,
    Output,
    OutputFormat,
    Yes,
    confirm_change,
    error_console,
    exit_with_error,
    file_errors,
    format_age,
    print_document,
    print_line,
    print_record,
    print_rows,
    secret_commands,
)
from roost.cli.server.dashboard import show_link

commands = typer.Typer()
_COLUMNS = ("agentId", "name", "engine", "agentVersion", "status", "createdAt", "lastUsed")
_PROFILE = ("engine", "description", "vibe", "emoji", "model")
_PROFILE_COLUMNS = ("agentId", "name", "description", "vibe", "emoji", "model", "status")
_START_TIMEOUT_SECONDS = 900.0  # starts take turns, and a template is fetched before
_UPDATE_TIMEOUT_SECONDS = 180.0  # another model restarts the gateway
_PAGE_TIMEOUT_SECONDS = 30.0
_CHUNK_BYTES = 1024**2


@commands.command("list")
def list_agents(data: Data = None, output: FleetOutput = OutputFormat.TABLE) -> None:
    """List your agents."""
    server = load_session(data)
    agents = server.call("GET", "/v0/agents")["agents"]
    if output is OutputFormat.YAML:
        print_fleet(server, [agent["agentId"] for agent in reversed(agents)])
        return
    rows = (agent | {"lastUsed": format_age(agent.get("lastUsedAt"))} for agent in agents)
    print_rows(rows, _COLUMNS, output, agents)


@commands.command("memory")
def list_memory(data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List the memory (bytes) that your running agents use now."""
    server = load_session(data)
    names = {agent["agentId"]: agent["name"] for agent in server.call("GET", "/v0/agents")["agents"]}
    used = server.call("GET", "/v0/agents/memory")["agents"]
    rows = [{"name": names.get(row["agentId"]), **row} for row in used]
    print_rows(rows, ("agentId", "name", "memoryBytes"), output)


@commands.command()
def create(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="At most 100 characters (default: that of the template).")
    ] = None,
    template: Annotated[
        str | None, typer.Option(metavar="SLUG", help="Template to make it from.", autocompletion=complete_templates)
    ] = None,
    snapshot: Annotated[str | None, typer.Option(metavar="CID", help="Snapshot of an agent to make it from.")] = None,
    attach_secrets: Annotated[
        bool, typer.Option("--attach-secrets", help="Give it your secrets of the names that the template asks for.")
    ] = False,
    skill: Annotated[
        list[str] | None, typer.Option(help="Id, slug, name or CID of a skill of your library; can be repeated.")
    ] = None,
    acknowledge: Acknowledge = False,
    engine: Annotated[str | None, typer.Option(help="`roost agents engines` lists them (default: the first).")] = None,
    description: Annotated[str | None, typer.Option(help="Purpose of the agent.")] = None,
    emoji: Annotated[str | None, typer.Option(help="An emoji shown next to the name.")] = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Create an agent and wait until it answers."""
    if name is None and template is None:
        exit_with_error("Give the agent a name, or a template with --template.", ExitCode.USAGE)
    fields = {"name": name, "engine": engine, "description": description, "emoji": emoji}
    body = drop_none(
        {**fields, "templateId": template, "snapshotCid": snapshot, "attachSecrets": attach_secrets or None}
    )
    server = load_session(data)
    if skill:
        body |= {"skillCids": find_references(server, skill, acknowledge), "acknowledge": acknowledge}
    with error_console.status("Starting the agent ..."):
        answer = server.call("POST", "/v0/agents", body, timeout_seconds=_START_TIMEOUT_SECONDS)
    print_record(_without_token(answer["agent"]), output)
    if skill and output is OutputFormat.TABLE:
        print_agent_skills(server, answer["agent"]["agentId"])
    for item in answer.get("missing", ()):
        print_line(_describe_missing(answer["agent"]["agentId"], item), error_console)


@commands.command()
def fork(
    agent: AgentName,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the new agent.")],
    snapshot: Annotated[
        str | None, typer.Option(help="CID or label of one of its snapshots (default: its present workspace).")
    ] = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Create an agent with workspace, memory and tasks of another one; secrets, channels and devices are not copied."""
    server = load_session(data)
    origin = server.find_agent(agent)
    path = f"/v0/agents/{origin['agentId']}/snapshots"
    with error_console.status("Copying the workspace ..."):
        cid = find_snapshot(server, path, snapshot)["snapshotCid"] if snapshot else take_snapshot(server, path)
    copied = {field: origin[field] for field in _PROFILE if origin.get(field)}
    with error_console.status("Starting the agent ..."):
        body = {**copied, "name": name, "snapshotCid": cid}
        answer = server.call("POST", "/v0/agents", body, timeout_seconds=_START_TIMEOUT_SECONDS)
    print_record(_without_token(answer["agent"]), output)


@commands.command()
def show(agent: AgentName, data: Data = None, output: FleetOutput = OutputFormat.TABLE) -> None:
    """Show one agent."""
    server = load_session(data)
    agent_id = server.find_agent(agent)["agentId"]
    if output is OutputFormat.YAML:
        print_fleet(server, [agent_id])
        return
    detail = server.call("GET", f"/v0/agents/{agent_id}")
    record = _without_token(detail["agent"])
    rest = {key: value for key, value in detail.items() if key != "agent"}
    print_record(record | rest, output)


@commands.command()
def delete(agent: AgentName, yes: Yes = False, data: Data = None) -> None:
    """Delete an agent with its container and files."""
    server = load_session(data)
    found = server.find_agent(agent)
    confirm_change(f"Delete {found['name']} ({found['agentId']}) with all its files?", yes)
    print_line(server.call("DELETE", f"/v0/agents/{found['agentId']}")["message"])


@commands.command()
def restart(
    agent: AgentName,
    version: Annotated[str | None, typer.Option(help="Engine version to restart with.")] = None,
    data: Data = None,
) -> None:
    """Restart an agent's gateway and wait until it answers."""
    server = load_session(data)
    agent_id = server.find_agent(agent)["agentId"]
    with error_console.status("Restarting ..."):
        body = {"version": version} if version else {}
        path = f"/v0/agents/{agent_id}/restart"
        answer = server.call("POST", path, body, timeout_seconds=_START_TIMEOUT_SECONDS)
    print_line(answer["message"])


@commands.command()
def token(
    agent: AgentName,
    rotate: Annotated[bool, typer.Option("--rotate", help="Replace the token; the old one fails at once.")] = False,
    yes: Yes = False,
    data: Data = None,
) -> None:
    """Print only the agent's gateway token, which gives full access to its container."""
    server = load_session(data)
    found = server.find_agent(agent)
    path = f"/v0/agents/{found['agentId']}/gateway-token"
    if rotate:
        who = f"{found['name']} ({found['agentId']})"
        confirm_change(f"All programs with the present gateway token of {who} lose access at once. Replace it?", yes)
    answer = server.call("POST", f"{path}/rotate") if rotate else server.call("GET", path)
    sys.stdout.write(f"{answer['token']}\n")


@commands.command("open")
def open_agent(
    agent: AgentName,
    print_url: Annotated[
        bool, typer.Option("--print", help="Print the link instead of opening it; it works once, for 60 seconds.")
    ] = False,
    data: Data = None,
) -> None:
    """Open the agent's page in a browser, signed in by a link that works once."""
    server = load_session(data)
    found = server.find_agent(agent)
    session = server.agent_session(found["agentId"])
    with connection_errors(server.url), open_http_client(session, _PAGE_TIMEOUT_SECONDS) as client:
        page = client.get("/")
    if page.status_code == 404:
        exit_with_error(
            f"{found['name']} has no page for a browser; `roost chat` and its API reach it.", ExitCode.NOT_FOUND
        )
    if page.status_code >= 400:
        exit_with_response(page)
    link = server.call("POST", f"/v0/agents/{found['agentId']}/sign-in-link")["url"]
    if print_url:
        sys.stdout.write(f"{link}\n")
    else:
        show_link(link, f"{found['url']}/", "60 seconds", is_open=webbrowser.open(link))


@commands.command("update")
def update_profile(
    agent: AgentName,
    name: Annotated[str | None, typer.Option(help="Another name.")] = None,
    description: Annotated[str | None, typer.Option(help="Purpose of the agent; an empty text removes it.")] = None,
    vibe: Annotated[str | None, typer.Option(help="How it talks; an empty text removes it.")] = None,
    emoji: Annotated[str | None, typer.Option(help="An emoji shown next to the name; empty: none.")] = None,
    model: Annotated[
        str | None, typer.Option(help="Preferred model; restarts the gateway. An empty text removes it.")
    ] = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Change an agent's name, description, vibe, emoji or preferred model."""
    profile = {"description": description, "vibe": vibe, "emoji": emoji, "model": model}
    given = {field: value or None for field, value in profile.items() if value is not None}
    body = given | ({} if name is None else {"name": name})
    if not body:
        exit_with_error("Nothing to change: give --name, --description, --vibe, --emoji or --model.", ExitCode.USAGE)
    server = load_session(data)
    path = f"{server.agent_path(agent)}/platform/metadata"
    with error_console.status("Changing ..."):
        answer = server.call("PATCH", path, body, timeout_seconds=_UPDATE_TIMEOUT_SECONDS)
    print_record(answer["agent"], output, _PROFILE_COLUMNS)


@commands.command("status")
def show_status(agent: AgentName, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Show an agent's state, and that of its gateway's process now."""
    server = load_session(data)
    print_record(server.call("GET", f"{server.agent_path(agent)}/status"), output)


@commands.command("engines")
def list_engines(data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List the engines that new agents can have on the server."""
    print_rows(load_session(data).call("GET", "/v0/agents/engines")["engines"], ("id", "label"), output)


@commands.command("export")
def export_agent(
    agent: AgentName,
    file: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file, `-` for standard output. Default: NAME.car.")
    ] = None,
    snapshot: Annotated[
        str | None, typer.Option(help="CID or label of one of its snapshots (default: its present state).")
    ] = None,
    yes: Yes = False,
    data: Data = None,
) -> None:
    """Write an agent to one file, without the values of its secrets; `import` creates the agent again anywhere."""
    server = load_session(data)
    found = server.find_agent(agent)
    target = file or Path(f"{found['name'].replace('/', '-')}.car")
    if target != Path("-") and target.exists():
        confirm_change(f"Replace {target}?", yes)
    path = f"/v0/agents/{found['agentId']}"
    query = ""
    if snapshot:
        cid = find_snapshot(server, f"{path}/snapshots", snapshot)["snapshotCid"]
        query = "?" + urlencode({"snapshotCid": cid})
    with progress_bar("Exporting", None) as advance:
        save_chunks(count_bytes(_download(server, f"{path}/export{query}"), advance), target, mode=0o600)
    if target != Path("-"):
        print_line(f"Exported {found['name']} to {target} ({target.stat().st_size} bytes).")


@commands.command("import")
def import_agent(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of `roost agents export`.")],
    name: Annotated[str | None, typer.Option(help="Name of the new agent (default: that in the file).")] = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Create an agent from a file of `export`, and say which secrets and channels it still needs."""
    server = load_session(data)
    with file_errors(file):
        size = file.stat().st_size
    query = f"?name={quote(name, safe='')}" if name else ""
    headers = {"Content-Type": "application/vnd.ipld.car", "Content-Length": str(size)}
    with progress_bar("Importing", size) as advance:
        answer = server.send(f"/v0/agents/import{query}", count_bytes(_read_chunks(file, size), advance), headers)
    if output is not OutputFormat.TABLE:
        answer["agent"].pop("gatewayToken", None)
        print_document(answer, output)
        return
    print_line(f"Imported {answer['agent']['name']} ({answer['agent']['agentId']}).")
    for line in _describe_lost(server, answer):
        print_line(line)


commands.command("logs")(print_logs)
commands.command("exec", cls=PassThroughCommand)(exec_command)
commands.command("shell", cls=PassThroughCommand)(open_shell)


def _describe_missing(agent_id: str, item: dict[str, str]) -> str:
    """Return one line about something that the agent lacks, with the command that adds it."""
    name, kind = item["name"], item["type"]
    needed = "Required" if item["required"] else "Optional"
    about = f": {item['description']}" if item["description"] else ""
    commands_of = {"secret": secret_commands(agent_id, name), "channel": f"roost channels set {agent_id} {name}"}
    advice = commands_of.get(kind, item["reason"])
    return f"{needed} {kind} {name}{about}\n  {advice}"


def _without_token(record: dict[str, object]) -> dict[str, object]:
    """Remove the gateway token, which scrollback and logs would keep, and the duplicate of `lifecycle`."""
    return {key: value for key, value in record.items() if key not in {"gatewayToken", "lifecycleJson"}}


def _download(server: ServerSession, path: str) -> Iterator[bytes]:
    with server.stream(path) as response:
        yield from response.iter_bytes()


def _read_chunks(file: Path, size: int) -> Iterator[bytes]:
    """Yield the bytes of a file as long as it was. Exits if it became shorter."""
    with file_errors(file), file.open("rb") as opened:
        while size and (chunk := opened.read(min(size, _CHUNK_BYTES))):
            size -= len(chunk)
            yield chunk
    if size:
        exit_with_error(f"{file} changed while it was read.", ExitCode.FAILED)


def _describe_lost(server: ServerSession, answer: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the agent still needs, with the commands that add it."""
    agent_id = answer["agent"]["agentId"]
    if missing := answer["missingSecrets"]:
        known = {secret["name"] for secret in server.call("GET", "/v0/secrets")["secrets"]}
        yield "It had these secrets, which you can attach:"
        for name in missing:
            yield f"  {secret_commands(agent_id, name, exists=name in known)}"
    if channels := answer["missingChannels"]:
        yield "It had these channels, whose tokens are not in the file:"
        for name, settings in channels.items():
            # Not as options: the author of the file must not choose who may write to the agent.
            users = ", ".join(settings["allowFrom"]) or "no user by name"
            command = shlex.join(["roost", "channels", "set", agent_id, name])
            yield f"  {command} (it had the policy {settings['dmPolicy']!r} and allowed {users})"
    for task in answer["skippedTasks"]:
        yield f"Skipped the task {task}: the engine refuses it."
