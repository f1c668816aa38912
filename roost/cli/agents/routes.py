"""`roost routes ...`: list and set the path routes of an agent."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from roost.cli.arguments import AgentName
from roost.cli.client.session import Data, load_session
from roost.cli.output.output import (
    Output,
    OutputFormat,
    Yes,
    confirm_change,
    count_nouns,
    error_console,
    print_as_document,
    print_line,
    print_rows,
)

commands = typer.Typer()
_OPEN = "open"
_COLUMNS = ("pathPrefix", "port", "protected", "url")


@commands.command("list")
def list_routes(agent: AgentName, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List the routes, longest prefix first."""
    server = load_session(data)
    found = server.find_agent(agent)
    _print(found, server.call("GET", _path(found))["mappings"], output)


@commands.command("set")
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
    if not yes and (changes := _describe_changes(server.call("GET", _path(found))["mappings"], mappings)):
        confirm_change(f"{'; '.join(changes)}. Replace the routes of {found['name']}?", yes)
    _print(found, server.call("PUT", _path(found), {"mappings": mappings})["mappings"], output)


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


def _print(agent: Mapping[str, Any], mappings: Sequence[Mapping[str, Any]], output: OutputFormat) -> None:
    if print_as_document(list(mappings), output):
        return
    if mappings:
        print_rows([{**one, "url": f"{agent['url']}{one['pathPrefix']}"} for one in mappings], _COLUMNS, output)
        warn_of_open([one["pathPrefix"] for one in mappings if not one["protected"]])
    else:
        print_line("No routes: all paths outside /v0 are the gateway's.", error_console)


def _path(agent: Mapping[str, Any]) -> str:
    return f"/v0/agents/{agent['agentId']}/port-forwarding"
