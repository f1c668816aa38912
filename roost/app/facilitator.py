"""The server of `roost facilitator`: a facilitator with a key of its own, behind its HTTP API."""

from dataclasses import dataclass

from roost.drivers.facilitator.local_loader import load_local_facilitator
from roost.http.server.facilitator import create_facilitator_server
from roost.http.server.server import HttpServer
from roost.net.addresses import parse_address
from roost.settings import BadSettings, Settings


@dataclass(frozen=True)
class FacilitatorServer:
    """network: the chain, as `eip155:8453`. account: the address that sends the transactions."""

    http: HttpServer
    network: str
    account: str


def build_facilitator_server(settings: Settings, host: str) -> FacilitatorServer:
    """Connect to the chain of the settings and build its server.

    Raises BadSettings, FacilitatorNotInstalled, FacilitatorUnavailable.
    """
    if settings.facilitator_rpc is None:
        raise BadSettings("facilitator_rpc: is required; set ROOST_FACILITATOR_RPC or --rpc")
    if settings.facilitator_key is None:
        raise BadSettings("facilitator_key: is required; set ROOST_FACILITATOR_KEY_FILE or ROOST_FACILITATOR_KEY")
    address = parse_address(host)
    is_loopback = host == "localhost" or (address is not None and address.is_loopback)
    if not is_loopback and settings.facilitator_token is None:
        raise BadSettings(
            f"host: {host} can be reached from outside, where anybody could spend the account's fees. "
            "Set ROOST_FACILITATOR_TOKEN, or listen on a loopback address."
        )
    facilitator = load_local_facilitator(settings.facilitator_key, settings.facilitator_rpc)
    http = create_facilitator_server(facilitator, facilitator.describe(), settings.facilitator_token)
    return FacilitatorServer(http, facilitator.network, facilitator.address)
