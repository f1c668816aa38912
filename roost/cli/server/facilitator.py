"""`roost facilitator`: checks payments and sends their transactions to a chain, with a key of the operator's."""

import asyncio
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from roost.cli.client.session import Data
from roost.cli.output.output import print_line

if TYPE_CHECKING:
    from roost.app.facilitator import FacilitatorServer

_PORT = 8650


def run_facilitator(
    rpc: Annotated[str | None, typer.Option(help="RPC address of the chain (ROOST_FACILITATOR_RPC).")] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; another than loopback needs a token.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for a free one.", min=0, max=65535)] = _PORT,
    data: Data = None,
) -> None:
    """Serve a facilitator of payments for one chain.

    The key of its account is in ROOST_FACILITATOR_KEY, or in the file that ROOST_FACILITATOR_KEY_FILE names.
    """
    from roost import config
    from roost.app.facilitator import build_facilitator_server
    from roost.core import log

    settings = config.load_settings(data=data, facilitator_rpc=rpc)
    server = build_facilitator_server(settings, host)
    log.configure_logging(settings.log_level or ("warning" if sys.stderr.isatty() else "info"))
    asyncio.run(_serve(server, host, port))


async def _serve(server: "FacilitatorServer", host: str, port: int) -> None:
    from roost.http.server.server import StopRequest, open_listener, stop_on_signals

    listener = open_listener(host, port, "Choose another with --port.")
    stop = StopRequest()
    stop_on_signals(stop)
    shown = f"[{host}]" if ":" in host else host
    print_line(f"Facilitator of {server.network} at http://{shown}:{listener.getsockname()[1]}")
    print_line(f"{server.account} sends the transactions and pays their fees. Press Ctrl-C to stop.")
    await server.http.run_on([listener], stop)
