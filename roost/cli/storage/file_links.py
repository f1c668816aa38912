"""`roost files link` and `roost files upload-link`: URLs that work without a key, for a time."""

import sys
from typing import Annotated

import typer

from roost.cli.client.session import Data, drop_none, load_storage
from roost.cli.storage.file_lookup import (
    FileName,
    KeyValues,
    Public,
    content_url,
    find_file,
    network_name,
    sign_download,
)
from roost.cli.storage.upload_form import parse_keyvalues

_Seconds = Annotated[int, typer.Option("--expires", min=1, help="Seconds that the link works.")]
_HOUR_SECONDS = 3600


def create_link(file: FileName, expires: _Seconds = _HOUR_SECONDS, public: Public = False, data: Data = None) -> None:
    """Print a URL of a file's content. That of a private file works for a time, for everyone who has it."""
    server = load_storage(data)
    url = content_url(server, find_file(server, file, public)["cid"], public)
    sys.stdout.write(f"{url if public else sign_download(server, url, expires)}\n")


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
