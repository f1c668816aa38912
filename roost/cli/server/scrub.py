"""`roost scrub`: verifies all stored content, with or without a running server, and lists what is damaged."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roost.cli.client.session import Data
from roost.cli.output.output import ExitCode, Output, OutputFormat, error_console, print_line, print_rows
from roost.cli.server.data_folder import load_data_folder
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
    """Verify all stored content and list what is damaged of all tenants. Exits with 1 if anything is."""
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
        print_line("No damage is known." if known else "No content is damaged.")
    if rows:
        raise typer.Exit(ExitCode.FAILED)


async def _find_damaged(
    db: "Database", blobs: "BlobStore", *, known: bool, rate: float | None
) -> Sequence[Mapping[str, Any]]:
    from roost.storage.content.reader import ContentReader
    from roost.storage.content.scrub import ContentScrubber
    from roost.storage.files.service import damaged_content

    try:
        if not known:
            scrub = ContentScrubber(db, ContentReader(db, blobs), rate * _MIB if rate else float("inf"), 1.0)
            await _read_all(scrub)
        return [_damaged_row(db, holder) async for holder in damaged_content(db)]
    finally:
        await blobs.close()


async def _read_all(scrub: "ContentScrubber") -> None:
    packs = 0
    with error_console.status("Reading ...") as status:
        async for _ in scrub.check_packs(clock.utc_now()):
            packs += 1
            status.update(f"Reading ... {packs:,} packs, {scrub.due_packs:,} to go")


def _damaged_row(db: "Database", file: "File | str") -> Mapping[str, Any]:
    """Describe a file, or another holder by its name: `agent/ID` (its snapshots), `skill/ID`, `template/ID`."""
    from roost.identity import tenants

    if isinstance(file, str):
        return dict.fromkeys(_COLUMNS) | {"id": file}
    tenant = db.run(lambda connection: tenants.get_tenant(connection, file.tenant_id).name)
    name, network = file.metadata.name, file.network
    return {"tenant": tenant, "network": network, "id": file.id, "name": name, "cid": file.cid, "size": file.size}
