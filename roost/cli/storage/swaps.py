"""`roost swaps ...`: set, show, delete: one CID that gateways serve in place of another."""

from typing import Annotated
from urllib.parse import quote

import typer

from roost.cli.client.session import Data, load_storage, path_segment
from roost.cli.output.output import Output, OutputFormat, Yes, confirm_change, print_line, print_record, print_rows
from roost.cli.storage.file_lookup import Public, network_name

commands = typer.Typer()
_Cid = Annotated[str, typer.Argument(metavar="CID", help="CID that visitors ask for.", parser=path_segment)]
_COLUMNS = ("mapped_cid", "created_at")


@commands.command("set")
def set_swap(
    cid: _Cid,
    target: Annotated[str, typer.Argument(metavar="TARGET", help="CID that they get.")],
    public: Public = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Serve another CID in place of this one."""
    server = load_storage(data)
    print_record(server.call("PUT", _path(cid, public), {"swap_cid": target})["data"], output)


@commands.command()
def show(
    cid: _Cid,
    gateway: Annotated[str | None, typer.Option(help="Domain of the gateway (default: any of yours).")] = None,
    public: Public = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List the swaps of a CID, newest first; without `mapped_cid` the swap ended."""
    server = load_storage(data)
    query = f"?domain={quote(gateway, safe='')}" if gateway else ""
    print_rows(server.call("GET", _path(cid, public) + query)["data"], _COLUMNS, output)


@commands.command()
def delete(cid: _Cid, yes: Yes = False, public: Public = False, data: Data = None) -> None:
    """Serve the CID itself again."""
    confirm_change(f"End the swap of {cid}?", yes)
    load_storage(data).call("DELETE", _path(cid, public))
    print_line("Deleted.")


def _path(cid: str, public: bool) -> str:
    return f"/v3/files/{network_name(public)}/swap/{cid}"
