"""`roost files ...`: list, show, upload, update, delete, get, cid, usage, link.

Uploads and downloads are streamed, so memory use does not depend on the size of a file.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from roost.cli.client.session import Data, drop_none, load_storage
from roost.cli.client.transfer import count_bytes, progress_bar, save_chunks
from roost.cli.output.output import (
    ExitCode,
    Output,
    OutputFormat,
    Yes,
    confirm_change,
    exit_with_error,
    print_line,
    print_record,
    print_rows,
)
from roost.cli.storage.file_lookup import (
    PAGE_SIZE,
    FileName,
    KeyValues,
    Public,
    content_url,
    fetch_records,
    find_file,
    network_name,
    sign_download,
)
from roost.cli.storage.local_files import MultipartForm, find_files, form_fields, import_files, parse_keyvalues
from roost.storage.content.unixfs.profile import PROFILES, V1, get_profile


def _existing_path(path: str) -> Path:
    """Parse an argument; an empty one, perhaps from an unset variable, does not mean the current folder."""
    if not path:
        raise typer.BadParameter("the path is empty.")
    if not Path(path).exists():
        raise typer.BadParameter(f"path {path!r} does not exist.")
    return Path(path)


commands = typer.Typer()
_Name = Annotated[str | None, typer.Option(help="Name of the file.")]
_Profile = Annotated[str, typer.Option(help=f"Rules for splitting it into blocks: {', '.join(PROFILES)}.")]
_Path = Annotated[Path, typer.Argument(metavar="PATH", help="A file or folder.", parser=_existing_path)]
_Seconds = Annotated[int, typer.Option("--expires", min=1, help="Seconds that the link works.")]
_COLUMNS = ("id", "name", "cid", "size", "mime_type", "group_id", "created_at")
_HOUR_SECONDS = 3600
_LINK_LIFETIME_SECONDS = 60


@commands.command("link")
def create_link(file: FileName, expires: _Seconds = _HOUR_SECONDS, public: Public = False, data: Data = None) -> None:
    """Print a URL of a file's content. That of a private file works for a time, for everyone who has it."""
    server = load_storage(data)
    url = content_url(server, find_file(server, file, public)["cid"], public)
    sys.stdout.write(f"{url if public else sign_download(server, url, expires)}\n")


@commands.command("upload-link")
def create_upload_link(
    name: Annotated[str | None, typer.Option(help="Name of the file.")] = None,
    group: Annotated[str | None, typer.Option(help="Id of the group to add it to.")] = None,
    keyvalue: KeyValues = None,
    max_size: Annotated[int | None, typer.Option(min=1, help="Largest size of the file, in bytes.")] = None,
    mime_type: Annotated[
        list[str] | None, typer.Option(help="Only this type, like `image/*`; can be repeated.")
    ] = None,
    expires: _Seconds = _HOUR_SECONDS,
    public: Public = False,
    data: Data = None,
) -> None:
    """Print a URL to which one file can be uploaded without a key: `curl -F file=@PATH URL`."""
    body = {
        "network": network_name(public),
        "filename": name,
        "group_id": group,
        "keyvalues": parse_keyvalues(keyvalue or []) or None,
        "max_file_size": max_size,
        "allow_mime_types": mime_type or None,
        "expires": expires,
    }
    server = load_storage(data)
    sys.stdout.write(f"{server.call('POST', '/v3/files/sign', drop_none(body))['data']}\n")


@commands.command("list")
def list_files(
    name: Annotated[str | None, typer.Option(help="Only names that contain this text.")] = None,
    group: Annotated[
        str | None, typer.Option(help="Only files of the group with this id; `null`: of no group.")
    ] = None,
    cid: Annotated[str | None, typer.Option(help="Only the file with this CID, in any encoding.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of results.")] = PAGE_SIZE,
    public: Public = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List your files, newest first."""
    query = {"name": name, "group": group, "cid": cid}
    server = load_storage(data)
    print_rows(fetch_records(server, f"files/{network_name(public)}", "files", query, limit), _COLUMNS, output)


@commands.command()
def show(file: FileName, public: Public = False, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Show one file."""
    print_record(find_file(load_storage(data), file, public), output)


@commands.command()
def upload(
    path: _Path,
    name: _Name = None,
    group: Annotated[str | None, typer.Option(help="Id of the group to add it to.")] = None,
    keyvalue: KeyValues = None,
    profile: _Profile = V1.name,
    public: Public = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Upload a file, or a folder with everything in it."""
    fields = {
        "network": network_name(public),
        "cid_version": get_profile(profile).name,
        "name": name,
        "group_id": group,
    }
    files = find_files(path)
    form = MultipartForm(form_fields(fields | {"keyvalues": parse_keyvalues(keyvalue or [])}), files)
    server = load_storage(data)
    with progress_bar("Uploading", int(form.headers["Content-Length"])) as advance:
        answer = server.send("/v3/files", count_bytes(form, advance), form.headers)
    print_record(answer["data"], output)


@commands.command()
def update(
    file: FileName,
    name: _Name = None,
    keyvalue: KeyValues = None,
    public: Public = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Change a file's name or metadata. Its content never changes."""
    body = {"name": name, "keyvalues": parse_keyvalues(keyvalue or []) or None}
    if not any(body.values()):
        exit_with_error("Nothing to change: give --name or --keyvalue.", ExitCode.USAGE)
    server = load_storage(data)
    found = find_file(server, file, public)
    given = {key: value for key, value in body.items() if value}
    print_record(server.call("PUT", f"/v3/files/{network_name(public)}/{found['id']}", given)["data"], output)


@commands.command()
def delete(file: FileName, yes: Yes = False, public: Public = False, data: Data = None) -> None:
    """Delete a file."""
    server = load_storage(data)
    found = find_file(server, file, public)
    confirm_change(f"Delete {found['name'] or found['cid']} ({found['cid']})?", yes)
    server.call("DELETE", f"/v3/files/{network_name(public)}/{found['id']}")
    print_line("Deleted.")


@commands.command()
def get(
    file: FileName,
    to: Annotated[Path | None, typer.Option("--to", help="File to write to; `-` for standard output.")] = None,
    public: Public = False,
    data: Data = None,
) -> None:
    """Download a file's content through one of your gateways. A folder comes as a tar archive."""
    server = load_storage(data)
    found = find_file(server, file, public)
    is_folder = found["mime_type"] == "directory"
    target = to or Path(_local_name(found, ".tar" if is_folder else ""))
    form = "?format=tar" if is_folder else ""
    url = content_url(server, found["cid"], public, form)
    address = urlsplit(url if public else sign_download(server, url, _LINK_LIFETIME_SECONDS))
    path = f"{address.path}?{address.query}" if address.query else address.path
    with (
        server.stream(path, host=urlsplit(url).netloc) as response,
        progress_bar("Fetching", None if is_folder else found["size"]) as advance,
    ):
        save_chunks(count_bytes(response.iter_bytes(), advance), target)
    if target != Path("-"):
        print_line(f"Wrote {target}.")


@commands.command()
def cid(path: _Path, profile: _Profile = V1.name, output: Output = OutputFormat.TABLE) -> None:
    """Compute the CID of a file or folder without a server."""
    files = find_files(path)
    rules = get_profile(profile)
    with progress_bar("Reading", sum(file.size for file in files)) as advance:
        tree = import_files(files, rules, advance)
    if output is OutputFormat.TABLE:
        print_line(str(tree.cid))
    else:
        record = {"cid": str(tree.cid), "size": tree.size, "number_of_files": len(files), "cid_version": rules.name}
        print_record(record, output)


@commands.command()
def usage(data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Show stored bytes and the limits: `max_size` of an upload, `max_files` of a folder."""
    print_record(load_storage(data).call("GET", "/v3/files/limits")["data"], output)


@commands.command("totals")
def show_totals(data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Show the number of files and their bytes on each network."""
    totals = load_storage(data).call("GET", "/v3/files/totals")["data"]
    rows = [{"network": network, **total} for network, total in totals.items()]
    print_rows(rows, ("network", "files", "bytes"), output)


def _local_name(file: Mapping[str, Any], ending: str) -> str:
    """Return the file's name if it is safe as a local name, else its CID. Exits if that file exists."""
    name = Path(str(file["name"] or "")).name
    name = (name if name not in {"", ".", ".."} and name.isprintable() else str(file["cid"])) + ending
    if Path(name).exists():
        exit_with_error(f"{name} exists; choose another file with --to.", ExitCode.USAGE)
    return name
