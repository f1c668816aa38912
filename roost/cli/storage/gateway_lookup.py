"""Storage gateways for commands: the argument that names one, and its record."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from roost.cli.client.session import ServerSession
from roost.cli.completion import complete_gateways
from roost.cli.output.output import exit_with_unknown

GatewayName = Annotated[
    str, typer.Argument(metavar="GATEWAY", help="The gateway's name or id.", autocompletion=complete_gateways)
]


def fetch_gateways(server: ServerSession) -> list[Mapping[str, Any]]:
    """Fetch all gateways, oldest first; they always fit on one page."""
    return server.call("GET", "/v3/gateways?pageSize=100")["data"]["rows"]


def find_gateway(server: ServerSession, gateway: str) -> Mapping[str, Any]:
    gateways = fetch_gateways(server)
    found = [row for row in gateways if gateway in (row["domain"], row["id"])]
    if not found:
        exit_with_unknown("gateway", gateway, [row["domain"] for row in gateways], "roost gateways list")
    return found[0]
