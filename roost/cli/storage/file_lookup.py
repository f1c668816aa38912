"""Files and gateways of the storage API for commands: their options, pages of records, and addresses of content."""

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import quote, urlencode

import typer

from roost.cli.client.session import ServerSession
from roost.cli.completion import complete_gateways
from roost.cli.output.output import ExitCode, exit_with_error, exit_with_unknown
from roost.core import clock
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.errors import InvalidCid

Public = Annotated[bool, typer.Option("--public", help="Use the public network instead of the private one.")]
FileName = Annotated[str, typer.Argument(metavar="FILE", help="The file's id or CID.")]
GatewayName = Annotated[
    str, typer.Argument(metavar="GATEWAY", help="The gateway's name or id.", autocompletion=complete_gateways)
]
KeyValues = Annotated[
    list[str] | None, typer.Option("--keyvalue", "-k", metavar="NAME=VALUE", help="Metadata; can be repeated.")
]
PAGE_SIZE = 100


def network_name(public: bool) -> str:
    return "public" if public else "private"


def fetch_records(
    server: ServerSession, path: str, field: str, query: Mapping[str, str | None], limit: int | None
) -> list[dict[str, Any]]:
    """Fetch up to `limit` records of a paged list, or all. field: the field of a page that contains the records."""
    found: list[dict[str, Any]] = []
    filters = {name: value for name, value in query.items() if value is not None}
    token = ""
    while limit is None or len(found) < limit:
        size = PAGE_SIZE if limit is None else min(limit - len(found), PAGE_SIZE)
        page = filters | {"limit": str(size)} | ({"pageToken": token} if token else {})
        answer = server.call("GET", f"/v3/{path}?{urlencode(page)}")["data"]
        found += answer[field]
        token = answer["next_page_token"]
        if not token:
            break
    return found


def fetch_gateways(server: ServerSession) -> list[Mapping[str, Any]]:
    """Fetch all gateways, oldest first; they always fit on one page."""
    return server.call("GET", "/v3/gateways?pageSize=100")["data"]["rows"]


def find_gateway(server: ServerSession, gateway: str) -> Mapping[str, Any]:
    gateways = fetch_gateways(server)
    found = [row for row in gateways if gateway in (row["domain"], row["id"])]
    if not found:
        exit_with_unknown("gateway", gateway, [row["domain"] for row in gateways], "roost gateways list")
    return found[0]


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
