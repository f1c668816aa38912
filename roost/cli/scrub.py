"""`roost scrub`: all stored content read again, beside a server or without one, and whose is damaged told by name."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roost.cli.client import Data
from roost.cli.output import ExitCode, Output, OutputFormat, errors, say, show_rows
from roost.core import clock

if TYPE_CHECKING:
    from roost.core.db import Database
    from roost.drivers.blob.contract import BlobStore
    from roost.storage.content.scrub import ContentScrubber
    from roost.storage.files.model import File

_MIB = 1024**2
_COLUMNS = ("tenant", "network", "id", "name", "cid", "size")


def scrub(
    known: Annotated[bool, typer.Option("--known", help="Read nothing; list what is known to be damaged.")] = False,
    rate: Annotated[float | None, typer.Option(min=0.1, help="MiB to read in a second, at most.")] = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Read all stored content again and list the files that are damaged, of every tenant. Exit code 1 if any is."""
    from roost import app, config

    settings = config.load_settings(data=data)
    db = app.open_database(settings)
    try:
        rows = asyncio.run(_damaged(db, app.blobs(settings), known=known, rate=rate))
    finally:
        db.close()
    if rows or output is OutputFormat.JSON:
        show_rows(rows, _COLUMNS, output)
    else:
        say("Nothing is known to be damaged." if known else "Nothing is damaged.")
    if rows:
        raise typer.Exit(ExitCode.FAILED)


async def _damaged(
    db: "Database", blobs: "BlobStore", *, known: bool, rate: float | None
) -> Sequence[Mapping[str, Any]]:
    from roost.storage.content.reader import ContentReader
    from roost.storage.content.scrub import ContentScrubber
    from roost.storage.files.damage import damaged

    try:
        if not known:
            scrub = ContentScrubber(db, ContentReader(db, blobs), rate * _MIB if rate else float("inf"))
            await _read_all(scrub)
        return [_row(db, file) async for file in damaged(db)]
    finally:
        await blobs.close()


async def _read_all(scrub: "ContentScrubber") -> None:
    began, packs = clock.utc_now(), 0
    with errors.status("Reading ...") as status:
        while await scrub.check(began) is not None:
            packs += 1
            status.update(f"Reading ... {packs:,} packs")


def _row(db: "Database", file: "File") -> Mapping[str, Any]:
    from roost.identity import tenants

    tenant = db.run(lambda connection: tenants.get_tenant(connection, file.tenant_id).name)
    name, network = file.note.name, file.network
    return {"tenant": tenant, "network": network, "id": file.id, "name": name, "cid": file.cid, "size": file.size}
