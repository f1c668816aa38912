"""`roost scrub`: verifies all stored content, with or without a running server, and lists damaged files."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roost.cli.client import Data
from roost.cli.data_folder import load_data_folder
from roost.cli.output import ExitCode, Output, OutputFormat, error_console, print_line, print_rows
from roost.core import clock

if TYPE_CHECKING:
    from roost.core.db import Database
    from roost.drivers.blob.contract import BlobStore
    from roost.storage.content.scrub import ContentScrubber
    from roost.storage.files.model import File

_MIB = 1024**2
_COLUMNS = ("tenant", "network", "id", "name", "cid", "size")


def scrub_content(
    known: Annotated[bool, typer.Option("--known", help="Only list known damage, without reading.")] = False,
    rate: Annotated[float | None, typer.Option(min=0.1, help="Maximum MiB to read per second.")] = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Verify all stored content and list the damaged files of all tenants. Exits with 1 if there are any."""
    from roost import app

    settings = load_data_folder(data)
    db = app.open_database(settings)
    try:
        rows = asyncio.run(_find_damaged(db, app.create_blob_store(settings), known=known, rate=rate))
    finally:
        db.close()
    if rows or output is not OutputFormat.TABLE:
        print_rows(rows, _COLUMNS, output)
    else:
        print_line("No damage is known." if known else "No file is damaged.")
    if rows:
        raise typer.Exit(ExitCode.FAILED)


async def _find_damaged(
    db: "Database", blobs: "BlobStore", *, known: bool, rate: float | None
) -> Sequence[Mapping[str, Any]]:
    from roost.storage.content.reader import ContentReader
    from roost.storage.content.scrub import ContentScrubber
    from roost.storage.files.damage import damaged_files

    try:
        if not known:
            scrub = ContentScrubber(db, ContentReader(db, blobs), rate * _MIB if rate else float("inf"), 1.0)
            await _read_all(scrub)
        return [_damaged_row(db, file) async for file in damaged_files(db)]
    finally:
        await blobs.close()


async def _read_all(scrub: "ContentScrubber") -> None:
    packs = 0
    with error_console.status("Reading ...") as status:
        async for _ in scrub.check_packs(clock.utc_now()):
            packs += 1
            status.update(f"Reading ... {packs:,} packs, {scrub.due_packs:,} to go")


def _damaged_row(db: "Database", file: "File") -> Mapping[str, Any]:
    from roost.identity import tenants

    tenant = db.run(lambda connection: tenants.get_tenant(connection, file.tenant_id).name)
    name, network = file.metadata.name, file.network
    return {"tenant": tenant, "network": network, "id": file.id, "name": name, "cid": file.cid, "size": file.size}
