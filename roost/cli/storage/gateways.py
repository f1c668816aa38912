"""`roost gateways ...`: storage gateways, their access controls, plugins and domains."""

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any
from urllib.parse import urlencode

import typer

from roost.cli.agents.domains import DomainName
from roost.cli.client.session import Data, ServerSession, drop_none, load_storage, path_segment
from roost.cli.output.output import (
    ExitCode,
    Output,
    OutputFormat,
    Yes,
    confirm_change,
    count_nouns,
    exit_with_error,
    print_as_document,
    print_line,
    print_record,
    print_rows,
)
from roost.cli.storage.file_lookup import GatewayName, fetch_gateways, find_gateway
from roost.core import clock

commands = typer.Typer()
domain_commands = typer.Typer(help="Give a storage gateway domains of your own.", no_args_is_help=True)
commands.add_typer(domain_commands, name="domains")
_Plugin = Annotated[int, typer.Argument(metavar="PLUGIN", help="1 shows wallet signatures, 2 applies swaps.")]
_DomainCid = Annotated[str | None, typer.Option(help="Content that the domain serves at its root.")]
_COLUMNS = ("domain", "url", "restrict", "created_at", "id")
_DOMAIN_COLUMNS = ("domain", "cid", "domain_validation_status", "ssl_validation_status", "reason")
_POLICIES = {"access_tokens": "accessTokens", "ips": "allowedIPAddresses", "hosts": "allowedHosts"}


class AnalyticsBreakdown(StrEnum):
    """Keys by which `analytics` groups requests."""

    DAY = "day"
    WEEK = "week"
    CID = "cid"
    FILE_NAME = "file_name"
    USER_AGENT = "user_agent"
    REFERER = "referer"


_PERIODS = frozenset({AnalyticsBreakdown.DAY, AnalyticsBreakdown.WEEK})


@commands.command("list")
def list_gateways(data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List your gateways. A new tenant has one."""
    print_rows(fetch_gateways(load_storage(data)), _COLUMNS, output)


@commands.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="First label of its host name.")],
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Create a gateway."""
    _print_gateway(load_storage(data).call("POST", "/v3/gateways", {"domain": name})["data"], output)


@commands.command()
def show(gateway: GatewayName, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Show one gateway with its access controls and plugins."""
    server = load_storage(data)
    found = find_gateway(server, gateway)
    plugins = server.call("GET", f"/v3/gateways/plugins/{found['id']}")["data"]
    _print_gateway({**found, "plugins": [plugin["plugin_id"] for plugin in plugins]}, output)


@commands.command()
def delete(gateway: GatewayName, yes: Yes = False, data: Data = None) -> None:
    """Delete a gateway. Its name cannot be used again."""
    server = load_storage(data)
    found = find_gateway(server, gateway)
    confirm_change(f"Delete {found['domain']}? Its name cannot be used again.", yes)
    server.call("DELETE", f"/v3/gateways/{found['id']}")
    print_line("Deleted.")


@commands.command()
def allow(
    gateway: GatewayName,
    ip: Annotated[str | None, typer.Option(help="Allow an address or a range like 10.0.0.0/8.")] = None,
    host: Annotated[str | None, typer.Option(help="Allow pages of this host to embed files.")] = None,
    token: Annotated[bool, typer.Option("--token", help="Create a token, shown once, and allow its holders.")] = False,
    yes: Yes = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Restrict who can use a gateway. Without restrictions it serves your own public files to everyone."""
    if [ip is not None, host is not None, token].count(True) != 1:
        exit_with_error("Give exactly one of --ip, --host and --token.", ExitCode.USAGE)
    server = load_storage(data)
    kind, body = ("ips", {"ip": ip}) if ip else ("hosts", {"host": host}) if host else ("access_tokens", None)
    found = find_gateway(server, gateway)
    if found["restrict"] and not yes:
        confirm_change(f"Everyone can read {_count_public(server)} at {found['domain']} now. Close it to others?", yes)
    path = f"/v3/gateways/{found['id']}/{kind}"
    print_record(server.call("POST", path, body)["data"], output)


@commands.command()
def refuse(
    gateway: GatewayName,
    control: Annotated[str, typer.Argument(metavar="CONTROL", help="Address, host, or id (from `show -o json`).")],
    yes: Yes = False,
    data: Data = None,
) -> None:
    """Remove an access control that `allow` added."""
    server = load_storage(data)
    found = find_gateway(server, gateway)
    for kind, policy in _POLICIES.items():
        for entry in found["settings"]["restriction_policies"][policy]:
            if control in (entry["id"], entry["value"]):
                if not yes:
                    confirm_change(_describe_removal(server, found, entry["value"]), yes)
                server.call("DELETE", f"/v3/gateways/{found['id']}/{kind}/{entry['id']}")
                print_line("Removed.")
                return
    exit_with_error(f"{found['domain']} has no access control {control!r}.", ExitCode.NOT_FOUND)


@commands.command()
def check(
    name: Annotated[str, typer.Argument(metavar="NAME", help="First label of a host name.", parser=path_segment)],
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Check whether a gateway's name is taken, by anyone."""
    print_record(load_storage(data).call("GET", f"/v3/gateways/exists/{name}")["data"], output)


@commands.command("plugins")
def list_plugins(data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List the plugins that gateways can have, and the gateways that have each."""
    server = load_storage(data)
    domains = {row["id"]: row["domain"] for row in fetch_gateways(server)}
    installed = server.call("GET", "/v3/gateways/plugins")["data"]
    plugins = server.call("GET", "/v3/gateways/plugins/marketplace")["data"]
    rows = [
        {**plugin, "gateways": [domains[row["gateway_id"]] for row in installed if row["plugin_id"] == plugin["id"]]}
        for plugin in plugins
    ]
    print_rows(rows, ("id", "name", "gateways", "description"), output)


@commands.command()
def install(gateway: GatewayName, plugin: _Plugin, data: Data = None) -> None:
    """Install a plugin on a gateway."""
    server = load_storage(data)
    server.call("POST", f"/v3/gateways/plugins/{find_gateway(server, gateway)['id']}", {"plugin_id": plugin})
    print_line("Installed.")


@commands.command()
def uninstall(gateway: GatewayName, plugin: _Plugin, data: Data = None) -> None:
    """Uninstall a plugin from a gateway."""
    server = load_storage(data)
    server.call("DELETE", f"/v3/gateways/plugins/{find_gateway(server, gateway)['id']}/plugin/{plugin}")
    print_line("Uninstalled.")


@commands.command()
def analytics(
    gateway: GatewayName,
    by: Annotated[AnalyticsBreakdown, typer.Option(help="Key to group by.")] = AnalyticsBreakdown.DAY,
    days: Annotated[int, typer.Option(min=1, max=3650, help="Number of days, today included.")] = 30,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show the number of requests to a gateway and the bytes that it sent."""
    server = load_storage(data)
    today = clock.utc_now().date()
    query = {"by": by.value, "start_date": today - timedelta(days=days - 1), "end_date": today, "limit": 1000}
    path = f"/v3/analytics/gateways/{'time_series' if by in _PERIODS else 'top'}"
    found = server.call(
        "GET", f"{path}?{urlencode({**query, 'gateway_domain': find_gateway(server, gateway)['domain']})}"
    )["data"]
    periods, column = (found["time_periods"], "period_start_time") if by in _PERIODS else (found, "value")
    print_rows(periods, (column, "requests", "bandwidth"), output)


def _describe_removal(server: ServerSession, gateway: Mapping[str, Any], control: str) -> str:
    """Return the question before an access control is removed."""
    policies = gateway["settings"]["restriction_policies"]
    left = sum(len(policies[policy]) for policy in _POLICIES.values()) - 1
    if left:
        others = count_nouns(left, "other access control")
        return f"{control} no longer gets in at {gateway['domain']}; {others} remain. Remove it?"
    return f"Nothing else restricts {gateway['domain']}: everyone can then read {_count_public(server)} there. Open it?"


def _count_public(server: ServerSession) -> str:
    """Return the number of public files in words, without it if the key may not list files."""
    answer = server.request("GET", "/v3/files/totals")
    count = None if answer.is_error else answer.json()["data"]["public"]["files"]
    return "the public files" if count is None else count_nouns(count, "public file")


def _print_gateway(record: Mapping[str, Any], output: OutputFormat) -> None:
    if print_as_document(record, output):
        return
    policies = record["settings"]["restriction_policies"]
    allowed = {kind: [entry["value"] for entry in policies[policy]] for kind, policy in _POLICIES.items()}
    plain = {name: value for name, value in record.items() if name != "settings"}
    print_record(plain | {name: values or None for name, values in allowed.items()}, output)


@domain_commands.command("list")
def list_domains(gateway: GatewayName, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List the domains, with what each lacks."""
    server = load_storage(data)
    print_rows(server.call("GET", _domains_path(server, gateway))["data"], _DOMAIN_COLUMNS, output)


@domain_commands.command("add")
def add_domain(
    gateway: GatewayName,
    domain: DomainName,
    cid: _DomainCid = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Register a domain, which is verified first."""
    server = load_storage(data)
    body = drop_none({"domain": domain, "cid": cid})
    _print_domain(server.call("POST", _domains_path(server, gateway), body)["data"], gateway, output)


@domain_commands.command("update")
def update_domain(
    gateway: GatewayName,
    domain: DomainName,
    cid: _DomainCid = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Serve another CID at the root, or without --cid all that the gateway serves."""
    server = load_storage(data)
    _print_domain(server.call("PUT", _domain_path(server, gateway, domain), {"cid": cid})["data"], gateway, output)


@domain_commands.command("verify")
def verify_domain(
    gateway: GatewayName, domain: DomainName, data: Data = None, output: Output = OutputFormat.TABLE
) -> None:
    """Look for the TXT record, and then for the certificate."""
    server = load_storage(data)
    _print_domain(server.call("POST", f"{_domain_path(server, gateway, domain)}/verify")["data"], gateway, output)


@domain_commands.command("remove")
def remove_domain(gateway: GatewayName, domain: DomainName, yes: Yes = False, data: Data = None) -> None:
    """Remove a domain; links through it stop working."""
    server = load_storage(data)
    path = _domain_path(server, gateway, domain)
    confirm_change(f"All links through the domain {domain} stop working. Remove it from {gateway}?", yes)
    server.call("DELETE", path)
    print_line("Removed.")


def _print_domain(domain: Mapping[str, Any], gateway: str, output: OutputFormat) -> None:
    if print_as_document(domain, output):
        return
    states = f"ownership {domain['domain_validation_status']}, certificate {domain['ssl_validation_status']}"
    print_line(f"{domain['url']}: {states}")
    if domain["reason"]:
        print_line(domain["reason"])
        print_line(f"Then run `roost gateways domains verify {gateway} {domain['domain']}`.")


def _domain_path(server: ServerSession, gateway: str, domain: str) -> str:
    """Return the path of the gateway's domain with this name or id."""
    path, name = _domains_path(server, gateway), domain.lower().rstrip(".")
    domains = server.call("GET", path)["data"]
    found = next((one for one in domains if name in (one["domain"], one["custom_domain_id"])), None)
    if found is None:
        exit_with_error(f"{gateway} has no domain {domain!r}.", ExitCode.NOT_FOUND)
    return f"{path}/{found['custom_domain_id']}"


def _domains_path(server: ServerSession, gateway: str) -> str:
    return f"/v3/gateways/{find_gateway(server, gateway)['id']}/custom_domain"
