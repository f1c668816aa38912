"""`roost files ...`: list, show, upload, update, delete, get, cid, usage.

Files are read from the disk while they are sent, and written to it while they come: their size is no matter.
"""

import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlencode, urlsplit

import typer
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from roost.cli import local_cid
from roost.cli.client import Data, ServerSession, session
from roost.cli.gateways import rows
from roost.cli.output import ExitCode, Output, OutputFormat, errors, fail, say, show_record, show_rows
from roost.cli.upload_form import MultipartForm as Upload
from roost.cli.upload_form import fields_of, found, keyvalues
from roost.core import clock
from roost.storage.unixfs.cid import Cid
from roost.storage.unixfs.errors import InvalidCid
from roost.storage.unixfs.profile import PROFILES, V1, named


def _there(path: str) -> Path:
    """No text is not the present folder, which Python takes it for: a variable may have been empty."""
    if not path:
        raise typer.BadParameter("no path is given.")
    if not Path(path).exists():
        raise typer.BadParameter(f"path {path!r} does not exist.")
    return Path(path)


nouns = typer.Typer(help="Files and folders, each with its CID.", no_args_is_help=True)
Public = Annotated[bool, typer.Option("--public", help="On the public network, instead of the private one.")]
_File = Annotated[str, typer.Argument(metavar="FILE", help="The file's id or CID.")]
_Notes = Annotated[list[str] | None, typer.Option("--keyvalue", "-k", metavar="NAME=VALUE", help="A note; repeat it.")]
_Name = Annotated[str | None, typer.Option(help="What to call it.")]
_Profile = Annotated[str, typer.Option(help=f"How it becomes blocks: {', '.join(PROFILES)}.")]
_Path = Annotated[Path, typer.Argument(metavar="PATH", help="A file or folder.", parser=_there)]
_COLUMNS = ("id", "name", "cid", "size", "mime_type", "group_id", "created_at")
_PAGE = 100
_LINK_SECONDS = 60


@nouns.command("list")
def list_files(
    name: Annotated[str | None, typer.Option(help="Those with this in their name.")] = None,
    group: Annotated[str | None, typer.Option(help="Those of a group, by its id; `null` for those in none.")] = None,
    cid: Annotated[str | None, typer.Option(help="The one with this CID, however it is written.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = _PAGE,
    public: Public = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List your files, the newest first."""
    query = {"name": name, "group": group, "cid": cid}
    show_rows(listed(session(data).storage(), f"files/{network(public)}", "files", query, limit), _COLUMNS, output)


@nouns.command()
def show(file: _File, public: Public = False, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Show one file."""
    show_record(_find(session(data).storage(), file, public), output)


@nouns.command()
def upload(
    path: _Path,
    name: _Name = None,
    group: Annotated[str | None, typer.Option(help="The id of the group that it goes into.")] = None,
    keyvalue: _Notes = None,
    profile: _Profile = V1.name,
    public: Public = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Upload a file, or a folder with all that is in it."""
    notes = {"network": network(public), "cid_version": named(profile).name, "name": name, "group_id": group}
    files = found(path)
    form = Upload(fields_of(notes | {"keyvalues": keyvalues(keyvalue or [])}), files)
    here = session(data).storage()
    with _progress("Uploading", int(form.headers["Content-Length"])) as done:
        answer = here.send("/v3/files", _counted(form, done), form.headers)
    show_record(answer["data"], output)


@nouns.command()
def update(
    file: _File,
    name: _Name = None,
    keyvalue: _Notes = None,
    public: Public = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Change what is noted about a file. Its content never changes."""
    body = {"name": name, "keyvalues": keyvalues(keyvalue or []) or None}
    if not any(body.values()):
        fail("Say what to change: --name or --keyvalue.", ExitCode.USAGE)
    here = session(data).storage()
    found = _find(here, file, public)
    given = {key: value for key, value in body.items() if value}
    show_record(here.call("PUT", f"/v3/files/{network(public)}/{found['id']}", given)["data"], output)


@nouns.command()
def delete(
    file: _File,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    public: Public = False,
    data: Data = None,
) -> None:
    """Delete a file."""
    here = session(data).storage()
    found = _find(here, file, public)
    if not yes:
        typer.confirm(f"Delete {found['name'] or found['cid']} ({found['cid']})?", abort=True)
    here.call("DELETE", f"/v3/files/{network(public)}/{found['id']}")
    say("Deleted.")


@nouns.command()
def get(
    file: _File,
    to: Annotated[Path | None, typer.Option("--to", help="Where to write it; `-` for standard output.")] = None,
    public: Public = False,
    data: Data = None,
) -> None:
    """Fetch a file's content, through a gateway of yours. A folder comes as a tar."""
    here = session(data).storage()
    found = _find(here, file, public)
    is_folder = found["mime_type"] == "directory"
    place = to or Path(_plain_name(found, ".tar" if is_folder else ""))
    host, path = _where(here, found["cid"], public, "?format=tar" if is_folder else "")
    with here.stream(host, path) as response, _progress("Fetching", None if is_folder else found["size"]) as done:
        _keep(_counted(response.iter_bytes(), done), place)
    if place != Path("-"):
        say(f"Wrote {place}.")


@nouns.command()
def cid(path: _Path, profile: _Profile = V1.name, output: Output = OutputFormat.TABLE) -> None:
    """Tell which CID a file or folder has, without uploading it or asking a server."""
    files = found(path)
    wanted = named(profile)
    with _progress("Reading", sum(file.size for file in files)) as done:
        tree = local_cid.root(files, wanted, done)
    if output is OutputFormat.TABLE:
        say(str(tree.cid))
    else:
        record = {"cid": str(tree.cid), "size": tree.size, "number_of_files": len(files), "cid_version": wanted.name}
        show_record(record, output)


@nouns.command()
def usage(data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Show how much you keep, and how much you may: bytes, `max_size` for one upload, `max_files` for one folder."""
    show_record(session(data).storage().call("GET", "/v3/files/limits")["data"], output)


def network(public: bool) -> str:
    return "public" if public else "private"


def listed(
    here: ServerSession, path: str, field: str, query: Mapping[str, str | None], limit: int
) -> list[dict[str, Any]]:
    """Records of the storage API, of as many pages as `limit` needs. field: where a page has them."""
    found: list[dict[str, Any]] = []
    asked = {name: value for name, value in query.items() if value is not None}
    token = ""
    while len(found) < limit:
        page = asked | {"limit": str(min(limit - len(found), _PAGE))} | ({"pageToken": token} if token else {})
        answer = here.call("GET", f"/v3/{path}?{urlencode(page)}")["data"]
        found += answer[field]
        token = answer["next_page_token"]
        if not token:
            break
    return found


def _find(here: ServerSession, file: str, public: bool) -> Mapping[str, Any]:
    """The file of that id, or of that CID."""
    where = f"files/{network(public)}"
    listing = "roost files list --public" if public else "roost files list"
    other = "without `--public`, private ones are looked for" if public else "`--public` looks for public ones"
    missing = f"There is no {network(public)} file {file} ({other}); `{listing}` shows those that there are."
    try:
        Cid.parse(file)
    except InvalidCid:
        return here.call("GET", f"/v3/{where}/{quote(file, safe='')}", missing=missing)["data"]
    found = listed(here, where, "files", {"cid": file}, 1)
    if not found:
        fail(missing, ExitCode.NOT_FOUND)
    return found[0]


def _where(here: ServerSession, cid: str, public: bool, form: str) -> tuple[str, str]:
    """The gateway, and the path there, at which a file's content is to be had; one that asks for no token, if any."""
    gateways = sorted(rows(here), key=lambda row: not row["restrict"])
    if not gateways:
        fail("You have no gateway; make one with `roost gateways create`.", ExitCode.NOT_FOUND)
    gateway = str(gateways[0]["url"])
    host = urlsplit(gateway).netloc
    if public:
        return host, f"/ipfs/{cid}{form}"
    asked = {
        "url": f"{gateway}/files/{cid}{form}",
        "date": int(clock.utc_now().timestamp()),
        "expires": _LINK_SECONDS,
        "method": "GET",
    }
    link = urlsplit(str(here.call("POST", "/v3/files/private/download_link", asked)["data"]))
    return host, f"{link.path}?{link.query}"


def _plain_name(file: Mapping[str, Any], ending: str) -> str:
    """The file's own name where it is one for a file here, else its CID. It is not written over another file."""
    name = Path(str(file["name"] or "")).name
    name = (name if name not in {"", ".", ".."} and name.isprintable() else str(file["cid"])) + ending
    if Path(name).exists():
        fail(f"{name} is here already; say where to write with --to.", ExitCode.USAGE)
    return name


def _keep(pieces: Iterable[bytes], place: Path) -> None:
    """All of it or nothing, but for standard output."""
    if place == Path("-"):
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return
    partial = place.with_name(f"{place.name}.part")
    try:
        with partial.open("wb") as file:
            file.writelines(pieces)
        partial.replace(place)
    except OSError as error:
        fail(f"{place}: {error.strerror}", ExitCode.USAGE)
    finally:
        partial.unlink(missing_ok=True)


def _counted(pieces: Iterable[bytes], done: Callable[[int], None]) -> Iterator[bytes]:
    for piece in pieces:
        yield piece
        done(len(piece))


@contextmanager
def _progress(what: str, total: int | None) -> Generator[Callable[[int], None]]:
    """A bar on a terminal. total: None where it is not known before."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda amount: bar.advance(task, amount)
