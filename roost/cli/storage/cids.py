"""What is kept about CIDs: `roost pins ...`, `roost signatures ...` and `roost swaps ...`.

The server fetches pins from the public IPFS network. A wallet signs a CID; its key is never read. A swap makes gateways
serve one CID in place of another.
"""

from typing import Annotated
from urllib.parse import quote

import typer

from roost.cli.client.session import Data, drop_none, load_storage, path_segment
from roost.cli.output.output import Output, OutputFormat, Yes, confirm_change, print_line, print_record, print_rows
from roost.cli.storage.file_lookup import KeyValues, Public, fetch_records, network_name
from roost.cli.storage.local_files import parse_keyvalues

pin_commands = typer.Typer()
signature_commands = typer.Typer()
swap_commands = typer.Typer()
_SignedCid = Annotated[str, typer.Argument(metavar="CID", help="CID of one of your files.", parser=path_segment)]
_SwapCid = Annotated[str, typer.Argument(metavar="CID", help="CID that visitors ask for.", parser=path_segment)]
_PIN_PATH = "files/public/pin_by_cid"
_PIN_COLUMNS = ("id", "cid", "name", "status", "group_id", "date_queued")
_SWAP_COLUMNS = ("mapped_cid", "created_at")


@pin_commands.command("add")
def add_pin(
    cid: Annotated[str, typer.Argument(metavar="CID", help="CID of the content.")],
    name: Annotated[str | None, typer.Option(help="Name of the file.")] = None,
    group: Annotated[str | None, typer.Option(help="Id of the public group to add it to.")] = None,
    keyvalue: KeyValues = None,
    host: Annotated[
        list[str] | None, typer.Option(help="Multiaddress of a node that has the content; can be repeated.")
    ] = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Queue a CID. It becomes a public file when it was fetched."""
    body = {
        "cid": cid,
        "name": name,
        "group_id": group,
        "keyvalues": parse_keyvalues(keyvalue or []) or None,
        "host_nodes": host or None,
    }
    server = load_storage(data)
    print_record(server.call("POST", f"/v3/{_PIN_PATH}", drop_none(body))["data"], output)


@pin_commands.command("list")
def list_pins(
    cid: Annotated[str | None, typer.Option(help="Only this CID, in any encoding.")] = None,
    status: Annotated[str | None, typer.Option(help="Only this status: `searching`, `expired`.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of results.")] = 100,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List waiting and failed pins, newest first. Those that succeeded are files: `roost files list --public`."""
    server = load_storage(data)
    print_rows(fetch_records(server, _PIN_PATH, "jobs", {"cid": cid, "status": status}, limit), _PIN_COLUMNS, output)


@pin_commands.command("remove")
def remove_pin(
    pin: Annotated[str, typer.Argument(metavar="PIN", help="Id, as in `roost pins list`.", parser=path_segment)],
    data: Data = None,
) -> None:
    """Remove a pin from the queue."""
    load_storage(data).call("DELETE", f"/v3/{_PIN_PATH}/{pin}")
    print_line("Removed.")


@signature_commands.command("add")
def add_signature(
    cid: _SignedCid,
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


@signature_commands.command("show")
def show_signature(
    cid: _SignedCid, public: Public = False, data: Data = None, output: Output = OutputFormat.TABLE
) -> None:
    """Show the signature of a CID."""
    server = load_storage(data)
    print_record(server.call("GET", f"/v3/files/{network_name(public)}/signature/{cid}")["data"], output)


@signature_commands.command("delete")
def delete_signature(cid: _SignedCid, yes: Yes = False, public: Public = False, data: Data = None) -> None:
    """Delete the signature of a CID."""
    confirm_change(f"Delete the signature of {cid}?", yes)
    load_storage(data).call("DELETE", f"/v3/files/{network_name(public)}/signature/{cid}")
    print_line("Deleted.")


@swap_commands.command("set")
def set_swap(
    cid: _SwapCid,
    target: Annotated[str, typer.Argument(metavar="TARGET", help="CID that they get.")],
    public: Public = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Serve another CID in place of this one."""
    server = load_storage(data)
    print_record(server.call("PUT", _swap_path(cid, public), {"swap_cid": target})["data"], output)


@swap_commands.command("show")
def show_swaps(
    cid: _SwapCid,
    gateway: Annotated[str | None, typer.Option(help="Domain of the gateway (default: any of yours).")] = None,
    public: Public = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List the swaps of a CID, newest first; without `mapped_cid` the swap ended."""
    server = load_storage(data)
    query = f"?domain={quote(gateway, safe='')}" if gateway else ""
    print_rows(server.call("GET", _swap_path(cid, public) + query)["data"], _SWAP_COLUMNS, output)


@swap_commands.command("delete")
def delete_swap(cid: _SwapCid, yes: Yes = False, public: Public = False, data: Data = None) -> None:
    """Serve the CID itself again."""
    confirm_change(f"End the swap of {cid}?", yes)
    load_storage(data).call("DELETE", _swap_path(cid, public))
    print_line("Deleted.")


def _swap_path(cid: str, public: bool) -> str:
    return f"/v3/files/{network_name(public)}/swap/{cid}"
