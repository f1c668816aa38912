"""`roost pins ...`: add, list, remove: files that the server fetches from the public IPFS network by their CID."""

from typing import Annotated

import typer

from roost.cli.client.session import Data, drop_none, load_storage, path_segment
from roost.cli.output.output import Output, OutputFormat, print_line, print_record, print_rows
from roost.cli.storage.file_lookup import KeyValues, fetch_records
from roost.cli.storage.local_files import parse_keyvalues

commands = typer.Typer()
_PATH = "files/public/pin_by_cid"
_COLUMNS = ("id", "cid", "name", "status", "group_id", "date_queued")
_DEFAULT_LIMIT = 100


@commands.command()
def add(
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
    print_record(server.call("POST", f"/v3/{_PATH}", drop_none(body))["data"], output)


@commands.command("list")
def list_pins(
    cid: Annotated[str | None, typer.Option(help="Only this CID, in any encoding.")] = None,
    status: Annotated[str | None, typer.Option(help="Only this status: `searching`, `expired`.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of results.")] = _DEFAULT_LIMIT,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List waiting and failed pins, newest first. Those that succeeded are files: `roost files list --public`."""
    server = load_storage(data)
    print_rows(fetch_records(server, _PATH, "jobs", {"cid": cid, "status": status}, limit), _COLUMNS, output)


@commands.command()
def remove(
    pin: Annotated[str, typer.Argument(metavar="PIN", help="Id, as in `roost pins list`.", parser=path_segment)],
    data: Data = None,
) -> None:
    """Remove a pin from the queue."""
    load_storage(data).call("DELETE", f"/v3/{_PATH}/{pin}")
    print_line("Removed.")
