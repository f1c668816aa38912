"""`roost files ...`: list, show, upload, update, delete, get, cid, usage.

Uploads and downloads are streamed, so memory use does not depend on the size of a file.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlencode, urlsplit

import typer

from roost.cli import local_cid
from roost.cli.client import Data, ServerSession, load_session
from roost.cli.gateways import fetch_gateways
from roost.cli.output import (
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
from roost.cli.transfer import count_bytes, progress_bar, save_chunks
from roost.cli.upload_form import MultipartForm, find_files, form_fields, parse_keyvalues
from roost.core import clock
from roost.storage.unixfs.cid import Cid
from roost.storage.unixfs.errors import InvalidCid
from roost.storage.unixfs.profile import PROFILES, V1, get_profile


def _existing_path(path: str) -> Path:
    """Parse an argument; an empty one, perhaps from an unset variable, does not mean the current folder."""
    if not path:
        raise typer.BadParameter("the path is empty.")
    if not Path(path).exists():
        raise typer.BadParameter(f"path {path!r} does not exist.")
    return Path(path)


commands = typer.Typer(help="Manage files and folders, each with its CID.", no_args_is_help=True)
Public = Annotated[bool, typer.Option("--public", help="Use the public network instead of the private one.")]
FileName = Annotated[str, typer.Argument(metavar="FILE", help="The file's id or CID.")]
KeyValues = Annotated[
    list[str] | None, typer.Option("--keyvalue", "-k", metavar="NAME=VALUE", help="Metadata; can be repeated.")
]
_Name = Annotated[str | None, typer.Option(help="Name of the file.")]
_Profile = Annotated[str, typer.Option(help=f"Rules for splitting it into blocks: {', '.join(PROFILES)}.")]
_Path = Annotated[Path, typer.Argument(metavar="PATH", help="A file or folder.", parser=_existing_path)]
_COLUMNS = ("id", "name", "cid", "size", "mime_type", "group_id", "created_at")
_PAGE_SIZE = 100
_LINK_LIFETIME_SECONDS = 60


@commands.command("list")
def list_files(
    name: Annotated[str | None, typer.Option(help="Only names that contain this text.")] = None,
    group: Annotated[
        str | None, typer.Option(help="Only files of the group with this id; `null`: of no group.")
    ] = None,
    cid: Annotated[str | None, typer.Option(help="Only the file with this CID, in any encoding.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of results.")] = _PAGE_SIZE,
    public: Public = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List your files, newest first."""
    query = {"name": name, "group": group, "cid": cid}
    print_rows(
        fetch_records(load_session(data).storage_session(), f"files/{network_name(public)}", "files", query, limit),
        _COLUMNS,
        output,
    )


@commands.command()
def show(file: FileName, public: Public = False, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Show one file."""
    print_record(find_file(load_session(data).storage_session(), file, public), output)


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
    server = load_session(data).storage_session()
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
    server = load_session(data).storage_session()
    found = find_file(server, file, public)
    given = {key: value for key, value in body.items() if value}
    print_record(server.call("PUT", f"/v3/files/{network_name(public)}/{found['id']}", given)["data"], output)


@commands.command()
def delete(
    file: FileName,
    yes: Yes = False,
    public: Public = False,
    data: Data = None,
) -> None:
    """Delete a file."""
    server = load_session(data).storage_session()
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
    server = load_session(data).storage_session()
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
        tree = local_cid.import_files(files, rules, advance)
    if output is OutputFormat.TABLE:
        print_line(str(tree.cid))
    else:
        record = {"cid": str(tree.cid), "size": tree.size, "number_of_files": len(files), "cid_version": rules.name}
        print_record(record, output)


@commands.command()
def usage(data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Show stored bytes and the limits: `max_size` of an upload, `max_files` of a folder."""
    print_record(load_session(data).storage_session().call("GET", "/v3/files/limits")["data"], output)


@commands.command("totals")
def show_totals(data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Show the number of files and their bytes on each network."""
    totals = load_session(data).storage_session().call("GET", "/v3/files/totals")["data"]
    rows = [{"network": network, **total} for network, total in totals.items()]
    print_rows(rows, ("network", "files", "bytes"), output)


def network_name(public: bool) -> str:
    return "public" if public else "private"


def fetch_records(
    server: ServerSession, path: str, field: str, query: Mapping[str, str | None], limit: int
) -> list[dict[str, Any]]:
    """Fetch up to `limit` records of a paged list. field: the field of a page that contains the records."""
    found: list[dict[str, Any]] = []
    filters = {name: value for name, value in query.items() if value is not None}
    token = ""
    while len(found) < limit:
        page = filters | {"limit": str(min(limit - len(found), _PAGE_SIZE))} | ({"pageToken": token} if token else {})
        answer = server.call("GET", f"/v3/{path}?{urlencode(page)}")["data"]
        found += answer[field]
        token = answer["next_page_token"]
        if not token:
            break
    return found


def find_file(server: ServerSession, file: str, public: bool) -> Mapping[str, Any]:
    """Return the file with that id or CID. Exits if there is none."""
    path = f"files/{network_name(public)}"
    listing = "roost files list --public" if public else "roost files list"
    hint = "omit `--public` for private files" if public else "use `--public` for public files"
    missing = f"There is no {network_name(public)} file {file} ({hint}); `{listing}` shows all."
    try:
        Cid.parse(file)
    except InvalidCid:
        return server.call("GET", f"/v3/{path}/{quote(file, safe='')}", not_found=missing)["data"]
    found = fetch_records(server, path, "files", {"cid": file}, 1)
    if not found:
        exit_with_error(missing, ExitCode.NOT_FOUND)
    return found[0]


def content_url(server: ServerSession, cid: str, public: bool, form: str = "") -> str:
    """Return the URL of a file's content, on an unrestricted gateway if there is one. form: a query."""
    gateways = sorted(fetch_gateways(server), key=lambda row: not row["restrict"])
    if not gateways:
        exit_with_error("You have no gateway; create one with `roost gateways create`.", ExitCode.NOT_FOUND)
    return f"{gateways[0]['url']}/{'ipfs' if public else 'files'}/{cid}{form}"


def sign_download(server: ServerSession, url: str, seconds: int) -> str:
    """Return the URL of a private file's content, signed for some seconds from now."""
    request = {"url": url, "date": int(clock.utc_now().timestamp()), "expires": seconds, "method": "GET"}
    return str(server.call("POST", "/v3/files/private/download_link", request)["data"])


def _local_name(file: Mapping[str, Any], ending: str) -> str:
    """Return the file's name if it is safe as a local name, else its CID. Exits if that file exists."""
    name = Path(str(file["name"] or "")).name
    name = (name if name not in {"", ".", ".."} and name.isprintable() else str(file["cid"])) + ending
    if Path(name).exists():
        exit_with_error(f"{name} exists; choose another file with --to.", ExitCode.USAGE)
    return name
