"""`roost signatures ...`: add, show, delete. The wallet signs; its key is never read."""

from typing import Annotated

import typer

from roost.cli.client.session import Data, load_storage, path_segment
from roost.cli.output.output import Output, OutputFormat, Yes, confirm_change, print_line, print_record
from roost.cli.storage.file_lookup import Public, network_name

commands = typer.Typer()
_Cid = Annotated[str, typer.Argument(metavar="CID", help="CID of one of your files.", parser=path_segment)]


@commands.command()
def add(
    cid: _Cid,
    address: Annotated[str, typer.Option(help="The wallet's address.")],
    signature: Annotated[str, typer.Option(help="The wallet's signature: 0x and 130 hexadecimal digits.")],
    public: Public = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Verify a signature and add it to a CID."""
    body = {"signature": signature, "address": address}
    server = load_storage(data)
    print_record(server.call("POST", f"/v3/files/{network_name(public)}/signature/{cid}", body)["data"], output)


@commands.command()
def show(cid: _Cid, public: Public = False, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Show the signature of a CID."""
    server = load_storage(data)
    print_record(server.call("GET", f"/v3/files/{network_name(public)}/signature/{cid}")["data"], output)


@commands.command()
def delete(cid: _Cid, yes: Yes = False, public: Public = False, data: Data = None) -> None:
    """Delete the signature of a CID."""
    confirm_change(f"Delete the signature of {cid}?", yes)
    load_storage(data).call("DELETE", f"/v3/files/{network_name(public)}/signature/{cid}")
    print_line("Deleted.")
