"""`roost gateways domains ...`: register, verify and remove the domains of a storage gateway."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from roost.cli.agents.domains import DomainName
from roost.cli.client.session import Data, ServerSession, drop_none, load_storage
from roost.cli.output.output import (
    ExitCode,
    Output,
    OutputFormat,
    Yes,
    confirm_change,
    exit_with_error,
    print_document,
    print_line,
    print_rows,
)
from roost.cli.storage.gateway_lookup import GatewayName, find_gateway

commands = typer.Typer(help="Give a storage gateway domains of your own.", no_args_is_help=True)
_Cid = Annotated[str | None, typer.Option(help="Content that the domain serves at its root.")]
_COLUMNS = ("domain", "cid", "domain_validation_status", "ssl_validation_status", "reason")


@commands.command("list")
def list_domains(gateway: GatewayName, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List the domains, with what each lacks."""
    server = load_storage(data)
    print_rows(server.call("GET", _path(server, gateway))["data"], _COLUMNS, output)


@commands.command("add")
def add_domain(
    gateway: GatewayName, domain: DomainName, cid: _Cid = None, data: Data = None, output: Output = OutputFormat.TABLE
) -> None:
    """Register a domain, which is verified first."""
    server = load_storage(data)
    body = drop_none({"domain": domain, "cid": cid})
    _print(server.call("POST", _path(server, gateway), body)["data"], gateway, output)


@commands.command("update")
def update_domain(
    gateway: GatewayName, domain: DomainName, cid: _Cid = None, data: Data = None, output: Output = OutputFormat.TABLE
) -> None:
    """Serve another CID at the root, or without --cid all that the gateway serves."""
    server = load_storage(data)
    _print(server.call("PUT", _find_path(server, gateway, domain), {"cid": cid})["data"], gateway, output)


@commands.command("verify")
def verify_domain(
    gateway: GatewayName, domain: DomainName, data: Data = None, output: Output = OutputFormat.TABLE
) -> None:
    """Look for the TXT record, and then for the certificate."""
    server = load_storage(data)
    _print(server.call("POST", f"{_find_path(server, gateway, domain)}/verify")["data"], gateway, output)


@commands.command("remove")
def remove_domain(gateway: GatewayName, domain: DomainName, yes: Yes = False, data: Data = None) -> None:
    """Remove a domain; links through it stop working."""
    server = load_storage(data)
    path = _find_path(server, gateway, domain)
    confirm_change(f"All links through the domain {domain} stop working. Remove it from {gateway}?", yes)
    server.call("DELETE", path)
    print_line("Removed.")


def _print(domain: Mapping[str, Any], gateway: str, output: OutputFormat) -> None:
    if output is not OutputFormat.TABLE:
        print_document(domain, output)
        return
    states = f"ownership {domain['domain_validation_status']}, certificate {domain['ssl_validation_status']}"
    print_line(f"{domain['url']}: {states}")
    if domain["reason"]:
        print_line(domain["reason"])
        print_line(f"Then run `roost gateways domains verify {gateway} {domain['domain']}`.")


def _find_path(server: ServerSession, gateway: str, domain: str) -> str:
    """Return the path of the gateway's domain with this name or id."""
    path, name = _path(server, gateway), domain.lower().rstrip(".")
    domains = server.call("GET", path)["data"]
    found = next((one for one in domains if name in (one["domain"], one["custom_domain_id"])), None)
    if found is None:
        exit_with_error(f"{gateway} has no domain {domain!r}.", ExitCode.NOT_FOUND)
    return f"{path}/{found['custom_domain_id']}"


def _path(server: ServerSession, gateway: str) -> str:
    return f"/v3/gateways/{find_gateway(server, gateway)['id']}/custom_domain"
