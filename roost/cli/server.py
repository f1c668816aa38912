"""The verbs about this machine: `up`, `doctor`, `routes`. What they need is loaded when they are called."""

import sys
from typing import Annotated

import typer

from roost.cli.client import Data
from roost.cli.output import ExitCode, Output, OutputFormat, say_field, show_json, show_rows, write

_STYLES = {"ok": "green", "no": "yellow", "fail": "red"}


def up(
    host: Annotated[str | None, typer.Option(help="The address to listen on (default 127.0.0.1).")] = None,
    port: Annotated[int | None, typer.Option(help="The port (default 8642; 0 takes a free one).")] = None,
    data: Data = None,
    domain: Annotated[str | None, typer.Option(help="The domain of all addresses (default localhost).")] = None,
    no_first_agent: Annotated[
        bool, typer.Option("--no-first-agent", help="Do not create an agent to begin with.")
    ] = False,
) -> None:
    """Start the server. On a new data folder it also creates a first agent."""
    from roost import app, config
    from roost.cli.up import serve

    settings = config.load_settings(data=data, host=host, port=port, domain=domain)
    serve(settings, app.drivers(settings), first_agent=not no_first_agent)


def doctor(data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Check this machine: what is enforced, what is not, and why. Exit code 1 if agents cannot run here."""
    from roost import config
    from roost.cli.doctor import examine

    rows = examine(config.load_settings(data=data))
    if output is OutputFormat.JSON:
        show_json(rows)
    else:
        width = max(len(row["part"]) for row in rows)
        for row in rows:
            say_field(row["status"], f"{row['part']:<{width}}  {row['detail']}", 4, _STYLES[row["status"]])
    if any(row["status"] == "fail" for row in rows):
        raise typer.Exit(ExitCode.FAILED)


def routes(
    output: Output = OutputFormat.TABLE,
    markdown: Annotated[bool, typer.Option("--markdown", help="The reference page, with all fields.")] = False,
) -> None:
    """List the endpoints: method, path, credentials, addresses, handler."""
    from prometheus_client import CollectorRegistry

    from roost.hosts import reference
    from roost.hosts.application import application
    from roost.hosts.routes import table
    from roost.web.service_registry import ServiceRegistry

    app = application(ServiceRegistry(), "", {}, CollectorRegistry())
    if markdown:
        write(reference.markdown(app), sys.stdout)
        return
    rows = table(app)
    show_rows(rows, ("method", "path", "credentials", "addresses", "handler"), output)
