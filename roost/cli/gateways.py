"""`roost gateways ...`: list, create, show, delete, allow, refuse, install, uninstall, analytics."""

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any
from urllib.parse import urlencode

import typer

from roost.cli.client import Data, ServerSession, session
from roost.cli.output import ExitCode, Output, OutputFormat, fail, say, show_record, show_rows
from roost.core import clock

nouns = typer.Typer(help="Addresses at which files are served.", no_args_is_help=True)
_Gateway = Annotated[str, typer.Argument(metavar="GATEWAY", help="The gateway's name or id.")]
_Plugin = Annotated[int, typer.Argument(metavar="PLUGIN", help="1 shows wallet signatures, 2 applies swaps.")]
_COLUMNS = ("domain", "url", "restrict", "created_at", "id")


@nouns.command("list")
def list_gateways(data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List your gateways. There is one from the beginning."""
    show_rows(rows(session(data).storage()), _COLUMNS, output)


@nouns.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The first part of its address.")],
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Create a gateway."""
    _show(session(data).storage().call("POST", "/v3/gateways", {"domain": name})["data"], output)


@nouns.command()
def show(gateway: _Gateway, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Show one gateway with what lets visitors in, and its plugins."""
    here = session(data).storage()
    found = find(here, gateway)
    plugins = here.call("GET", f"/v3/gateways/plugins/{found['id']}")["data"]
    _show({**found, "plugins": [one["plugin_id"] for one in plugins]}, output)


@nouns.command()
def delete(
    gateway: _Gateway,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    data: Data = None,
) -> None:
    """Delete a gateway. Its name is never given again."""
    here = session(data).storage()
    found = find(here, gateway)
    if not yes:
        typer.confirm(f"Delete {found['domain']}, for ever?", abort=True)
    here.call("DELETE", f"/v3/gateways/{found['id']}")
    say("Deleted.")


@nouns.command()
def allow(
    gateway: _Gateway,
    ip: Annotated[str | None, typer.Option(help="An address, or a range like 10.0.0.0/8.")] = None,
    host: Annotated[str | None, typer.Option(help="A host whose pages may show what is served.")] = None,
    token: Annotated[bool, typer.Option("--token", help="Whoever has a token, which is made and shown once.")] = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Say who may use a gateway. One that lets nobody in by name serves your own files, to everybody."""
    if [ip is not None, host is not None, token].count(True) != 1:
        fail("Say who: one of --ip, --host and --token.", ExitCode.USAGE)
    here = session(data).storage()
    kind, body = ("ips", {"ip": ip}) if ip else ("hosts", {"host": host}) if host else ("access_tokens", None)
    path = f"/v3/gateways/{find(here, gateway)['id']}/{kind}"
    show_record(here.call("POST", path, body)["data"], output)


@nouns.command()
def refuse(
    gateway: _Gateway,
    control: Annotated[str, typer.Argument(metavar="CONTROL", help="The address or host, or its id (`show -o json`).")],
    data: Data = None,
) -> None:
    """Take back what `allow` said."""
    here = session(data).storage()
    found = find(here, gateway)
    for kind, policy in _KINDS.items():
        for one in found["settings"]["restriction_policies"][policy]:
            if control in (one["id"], one["value"]):
                here.call("DELETE", f"/v3/gateways/{found['id']}/{kind}/{one['id']}")
                say("Taken back.")
                return
    fail(f"{found['domain']} has no access control {control!r}.", ExitCode.NOT_FOUND)


@nouns.command()
def install(gateway: _Gateway, plugin: _Plugin, data: Data = None) -> None:
    """Install a plugin on a gateway."""
    here = session(data).storage()
    here.call("POST", f"/v3/gateways/plugins/{find(here, gateway)['id']}", {"plugin_id": plugin})
    say("Installed.")


@nouns.command()
def uninstall(gateway: _Gateway, plugin: _Plugin, data: Data = None) -> None:
    """Take a plugin off a gateway."""
    here = session(data).storage()
    here.call("DELETE", f"/v3/gateways/plugins/{find(here, gateway)['id']}/plugin/{plugin}")
    say("Uninstalled.")


class AnalyticsBreakdown(StrEnum):
    """What `analytics` tells apart."""

    DAY = "day"
    WEEK = "week"
    CID = "cid"
    FILE_NAME = "file_name"
    USER_AGENT = "user_agent"
    REFERER = "referer"


@nouns.command()
def analytics(
    gateway: _Gateway,
    by: Annotated[AnalyticsBreakdown, typer.Option(help="What is told apart.")] = AnalyticsBreakdown.DAY,
    days: Annotated[int, typer.Option(min=1, max=3650, help="How far back.")] = 30,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show how often a gateway was asked, and how many bytes it sent."""
    here = session(data).storage()
    today = clock.utc_now().date()
    asked = {"by": by.value, "start_date": today - timedelta(days=days - 1), "end_date": today, "limit": 1000}
    path = f"/v3/analytics/gateways/{'time_series' if by in _PERIODS else 'top'}"
    found = here.call("GET", f"{path}?{urlencode({**asked, 'gateway_domain': find(here, gateway)['domain']})}")["data"]
    periods, column = (found["time_periods"], "period_start_time") if by in _PERIODS else (found, "value")
    show_rows(periods, (column, "requests", "bandwidth"), output)


_PERIODS = frozenset({AnalyticsBreakdown.DAY, AnalyticsBreakdown.WEEK})
_KINDS = {"access_tokens": "accessTokens", "ips": "allowedIPAddresses", "hosts": "allowedHosts"}


def rows(here: ServerSession) -> list[Mapping[str, Any]]:
    """All gateways, the oldest first. There are never more than one page holds."""
    return here.call("GET", "/v3/gateways?pageSize=100")["data"]["rows"]


def find(here: ServerSession, gateway: str) -> Mapping[str, Any]:
    found = [row for row in rows(here) if gateway in (row["domain"], row["id"])]
    if not found:
        fail(f"There is no gateway {gateway!r}; `roost gateways list` shows those that there are.", ExitCode.NOT_FOUND)
    return found[0]


def _show(record: Mapping[str, Any], output: OutputFormat) -> None:
    if output is OutputFormat.JSON:
        show_record(record, output)
        return
    policies = record["settings"]["restriction_policies"]
    allowed = {kind: [one["value"] for one in policies[policy]] for kind, policy in _KINDS.items()}
    plain = {name: value for name, value in record.items() if name not in {"settings", "custom_domains"}}
    show_record(plain | {name: values or None for name, values in allowed.items()}, output)
