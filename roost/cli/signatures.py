"""`roost signatures ...`: add, show, delete. Signing itself is a wallet's work: no key comes near here."""

from typing import Annotated

import typer

from roost.cli.client import Data, segment, session
from roost.cli.files import Public, network
from roost.cli.output import Output, OutputFormat, say, show_record

nouns = typer.Typer(help="Wallet signatures that vouch for CIDs.", no_args_is_help=True)
_Cid = Annotated[str, typer.Argument(metavar="CID", help="The CID of a file of yours.", parser=segment)]


@nouns.command()
def add(
    cid: _Cid,
    address: Annotated[str, typer.Option(help="The wallet's address.")],
    signature: Annotated[str, typer.Option(help="What the wallet made: 0x and 130 hexadecimal digits.")],
    public: Public = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Add a signature to a CID; it is checked first."""
    body = {"signature": signature, "address": address}
    here = session(data).storage()
    show_record(here.call("POST", f"/v3/files/{network(public)}/signature/{cid}", body)["data"], output)


@nouns.command()
def show(cid: _Cid, public: Public = False, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Show the signature of a CID."""
    here = session(data).storage()
    show_record(here.call("GET", f"/v3/files/{network(public)}/signature/{cid}")["data"], output)


@nouns.command()
def delete(cid: _Cid, public: Public = False, data: Data = None) -> None:
    """Delete the signature of a CID."""
    session(data).storage().call("DELETE", f"/v3/files/{network(public)}/signature/{cid}")
    say("Deleted.")
