"""`roost domains ...` and `roost routes ...`: names of an agent, and paths of its address for its own programs."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from roost.cli.arguments import AgentName
from roost.cli.client.session import Data, ServerSession, drop_none, load_session
from roost.cli.completion import complete_domains
from roost.cli.output.output import (
    ExitCode,
    Output,
    OutputFormat,
    Yes,
    confirm_change,
    count_nouns,
    error_console,
    exit_with_error,
    print_as_document,
    print_line,
    print_rows,
)

commands = typer.Typer()
route_commands = typer.Typer()
DomainName = Annotated[
    str,
    typer.Argument(
        metavar="DOMAIN", help="The domain, such as app.example.com, or its id.", autocompletion=complete_domains
    ),
]
Port = Annotated[int | None, typer.Option(help="Port of the agent's own program (default: the gateway).")]
_DOMAIN_COLUMNS = ("domain", "targetPort", "protected", "status", "url", "reason")
_ROUTE_COLUMNS = ("pathPrefix", "port", "protected", "url")
_OPEN = "open"


@commands.command("list")
def list_domains(agent: AgentName, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List the domains, with what each lacks."""
    server = load_session(data)
    found = server.call("GET", f"{server.agent_path(agent)}/domains")["domains"]
    if print_as_document(found, output):
        return
    if found:
        print_rows(found, _DOMAIN_COLUMNS, output)
        warn_of_open([one["domain"] for one in found if not one["protected"]])
    else:
        print_line("No domains.", error_console)


@commands.command("add")
def add_domain(
    agent: AgentName,
    subdomain: Annotated[str | None, typer.Option(help="First label of a name below the server's domain.")] = None,
    domain: Annotated[str | None, typer.Option(help="A domain of your own, such as app.example.com.")] = None,
    port: Port = None,
    is_open: Annotated[bool, typer.Option("--open", help="Let visitors in without the gateway token.")] = False,
    yes: Yes = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Register a subdomain, which is active at once, or a domain of your own, which is verified first."""
    if (subdomain is None) is (domain is None):
        raise typer.BadParameter("Name one of --subdomain and --domain")
    if is_open:
        _confirm_open(subdomain or domain or "", port, yes)
    server = load_session(data)
    body = {"subdomain": subdomain, "customDomain": domain, "targetPort": port, "protected": not is_open}
    _print_domain(server.call("POST", f"{server.agent_path(agent)}/domains", drop_none(body))["domain"], agent, output)


@commands.command("challenge")
def show_challenge(
    agent: AgentName, domain: DomainName, data: Data = None, output: Output = OutputFormat.TABLE
) -> None:
    """Show the TXT record that proves a domain to be yours."""
    server = load_session(data)
    shown = server.call("POST", f"{server.agent_path(agent)}/domains/challenge", {"customDomain": domain})
    print_rows([shown], ("name", "type", "value"), output)


@commands.command("verify")
def verify_domain(agent: AgentName, domain: DomainName, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Look for the TXT record, and then for the certificate."""
    server = load_session(data)
    _print_domain(server.call("POST", f"{_find(server, agent, domain)[0]}/verify")["domain"], agent, output)


@commands.command("update")
def update_domain(
    agent: AgentName,
    domain: DomainName,
    port: Port = None,
    protected: Annotated[
        bool | None, typer.Option("--protected/--open", help="Whether visitors need the gateway token.")
    ] = None,
    yes: Yes = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Change where a domain leads, and who gets in."""
    server = load_session(data)
    body = drop_none({"targetPort": port, "protected": protected})
    path, present = _find(server, agent, domain)
    is_open = not present["protected"] if protected is None else not protected
    if is_open and (present["protected"] or port not in (None, present["targetPort"])):
        _confirm_open(present["domain"], port or present["targetPort"], yes)
    elif not is_open and not present["protected"]:
        confirm_change(f"Everyone can use {present['domain']} now. Require the gateway token?", yes)
    _print_domain(server.call("PUT", path, body)["domain"], agent, output)


@commands.command("remove")
def remove_domain(agent: AgentName, domain: DomainName, yes: Yes = False, data: Data = None) -> None:
    """Remove a domain; connections through it end."""
    server = load_session(data)
    path, present = _find(server, agent, domain)
    who = "who has the gateway token" if present["protected"] else "everyone"
    confirm_change(f"{present['domain']} leads {who} to port {present['targetPort']} now. Remove it?", yes)
    print_line(server.call("DELETE", path)["message"])


def _confirm_open(name: str, port: int | None, yes: bool) -> None:
    target = "the agent's gateway" if port is None else f"the program on port {port}"
    confirm_change(f"Everyone can then use {target} through {name}, without a token. Open it?", yes)


def _print_domain(domain: Mapping[str, Any], agent: str, output: OutputFormat) -> None:
    if print_as_document(domain, output):
        return
    print_line(f"{domain['domain']} is {domain['status']}: {domain['url']}")
    if domain["reason"]:
        print_line(domain["reason"])
        print_line(f"Then run `roost domains verify {agent} {domain['domain']}`.")


def _find(server: ServerSession, agent: str, domain: str) -> tuple[str, Mapping[str, Any]]:
    """Return the path and the record of the agent's domain with this name or id."""
    path = f"{server.agent_path(agent)}/domains"
    name = domain.lower().rstrip(".")
    found = next((one for one in server.call("GET", path)["domains"] if name in (one["domain"], one["id"])), None)
    if found is None:
        exit_with_error(
            f"{agent} has no domain {domain!r}; `roost domains list {agent}` lists them.", ExitCode.NOT_FOUND
        )
    return f"{path}/{found['id']}", found


@route_commands.command("list")
def list_routes(agent: AgentName, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List the routes, longest prefix first."""
    server = load_session(data)
    found = server.find_agent(agent)
    mappings = server.call("GET", f"/v0/agents/{found['agentId']}/port-forwarding")["mappings"]
    _print_routes(found, mappings, output)


@route_commands.command("set")
def set_routes(
    agent: AgentName,
    routes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATH=PORT",
            help="Routes that replace all others, such as /admin=4000; /site=3000:open needs no token.",
        ),
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="Remove all routes.")] = False,
    yes: Yes = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Replace all routes at once."""
    if bool(routes) is none:
        raise typer.BadParameter("Name the routes, such as /site=3000, or remove all with --none")
    mappings = [_parse_route(text) for text in routes or ()]
    server = load_session(data)
    found = server.find_agent(agent)
    path = f"/v0/agents/{found['agentId']}/port-forwarding"
    if not yes and (changes := _describe_changes(server.call("GET", path)["mappings"], mappings)):
        confirm_change(f"{'; '.join(changes)}. Replace the routes of {found['name']}?", yes)
    _print_routes(found, server.call("PUT", path, {"mappings": mappings})["mappings"], output)


def _parse_route(text: str) -> Mapping[str, Any]:
    """Parse `PATH=PORT` or `PATH=PORT:open`."""
    prefix, _, target = text.rpartition("=")
    port, _, access = target.partition(":")
    is_port = port.isascii() and port.isdigit() and len(port) <= 5 and int(port) <= 65535
    if not prefix or not is_port or access not in {"", _OPEN}:
        raise typer.BadParameter(f"A route is PATH=PORT or PATH=PORT:{_OPEN}, got {text[:200]!r}")
    return {"pathPrefix": prefix, "port": int(port), "protected": access != _OPEN}


def _describe_changes(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> Sequence[str]:
    """Say which paths a change opens to everyone, closes to those without a token, and ends."""
    old = {one["pathPrefix"]: one for one in before}
    new = {one["pathPrefix"].rstrip("/") or "/": one for one in after}  # as the server stores them
    opened = {path for path, one in old.items() if not one["protected"]}
    opens = [
        path
        for path, one in new.items()
        if not one["protected"] and not (path in opened and old[path]["port"] == one["port"])
    ]
    closes = [path for path, one in new.items() if one["protected"] and path in opened]
    ends = [path for path in old if path not in new]
    texts = (
        (opens, "opened to everyone, without a token"),
        (closes, "closed to visitors without the gateway token"),
        (ends, "removed"),
    )
    return [f"{count_nouns(len(paths), 'path')} {text}: {', '.join(paths)}" for paths, text in texts if paths]


def warn_of_open(addresses: Sequence[str]) -> None:
    """Say which addresses need no token, and what their programs must not do."""
    if addresses:
        names, verb = ", ".join(addresses), "need" if len(addresses) > 1 else "needs"
        text = f"{names} {verb} no token: anyone can use what the program there does, such as a model that it asks."
        print_line(text, error_console)


def _print_routes(agent: Mapping[str, Any], mappings: Sequence[Mapping[str, Any]], output: OutputFormat) -> None:
    if print_as_document(list(mappings), output):
        return
    if mappings:
        print_rows([{**one, "url": f"{agent['url']}{one['pathPrefix']}"} for one in mappings], _ROUTE_COLUMNS, output)
        warn_of_open([one["pathPrefix"] for one in mappings if not one["protected"]])
    else:
        print_line("No routes: all paths outside /v0 are the gateway's.", error_console)
