"""Commands that run a server, or work beside one. They import the server when called, so that others start fast."""

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roost.cli.client.session import Data
from roost.cli.output.output import (
    ExitCode,
    Output,
    OutputFormat,
    error_console,
    print_as_document,
    print_field,
    print_json,
    print_line,
    print_rows,
    write_output,
)
from roost.cli.server.data_folder import (
    has_other_database,
    is_data_folder,
    load_data_folder,
    load_local_settings,
    open_data_folder,
)
from roost.core import clock
from roost.core.sensitive import Sensitive

if TYPE_CHECKING:
    from roost.agents.lifecycle.system.model import CheckResult
    from roost.app.facilitator import FacilitatorServer
    from roost.core.db import Database
    from roost.drivers.blob.contract import BlobStore
    from roost.settings import Settings
    from roost.storage.content.scrub import ContentScrubber
    from roost.storage.files.model import File


api_commands = typer.Typer()
_MIB = 1024**2
_FACILITATOR_PORT = 8650
_STYLES = {"ok": "green", "no": "yellow", "fail": "red"}
_DAMAGE_COLUMNS = ("tenant", "network", "id", "name", "cid", "size")


def start_server(
    host: Annotated[str | None, typer.Option(help="Address to listen on (default 127.0.0.1).")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on (default 8642; 0 for a free one).")] = None,
    data: Data = None,
    domain: Annotated[str | None, typer.Option(help="Domain of all addresses (default localhost).")] = None,
    tls: Annotated[
        bool | None, typer.Option("--tls", help="Serve HTTPS on port 443, with certificates (needs --domain).")
    ] = None,
    no_first_agent: Annotated[bool, typer.Option("--no-first-agent", help="Do not create a first agent.")] = False,
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Do not open the dashboard in a browser of this desktop.")
    ] = False,
) -> None:
    """Start the server. In a new data folder it also creates a first agent."""
    from roost import config
    from roost.core.machine.process_priority import join_recorded_group

    settings = config.load_settings(data=data, host=host, port=port, domain=domain, tls=tls)
    join_recorded_group(settings.data)
    from roost import app
    from roost.cli.server.up import run_server

    run_server(settings, app.create_drivers(settings), first_agent=not no_first_agent, opens_browser=not no_browser)


def run_doctor(data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Check whether agents can run on this machine and which limits are enforced. Exits with 1 if they cannot run."""
    from roost.app.doctor import run_checks

    settings = _add_flags_of_server(load_local_settings(data))
    rows = run_checks(settings) if is_data_folder(settings) else _check_machine(settings)
    if not print_as_document(rows, output):
        width = max(len(row["part"]) for row in rows)
        for row in rows:
            print_field(row["status"], f"{row['part']:<{width}}  {row['detail']}", 4, _STYLES[row["status"]])
    if any(row["status"] == "fail" for row in rows):
        raise typer.Exit(ExitCode.FAILED)


def _add_flags_of_server(settings: "Settings") -> "Settings":
    """Return the settings of the server that runs on the data folder, which its flags may have changed."""
    from roost import config
    from roost.http.server.server import is_data_folder_locked

    if not is_data_folder(settings) or not is_data_folder_locked(settings.data):
        return settings
    try:
        flags = json.loads((settings.data / "cli.json").read_text())
        return config.load_settings(data=settings.data, domain=flags["domain"], tls=flags["tls"])
    except (OSError, ValueError, KeyError, TypeError):  # the server has just been started, or is an older one
        return settings


def _check_machine(settings: "Settings") -> "Sequence[CheckResult]":
    """Run the checks in a temporary folder, because the one of the settings is no data folder yet."""
    from roost.app.doctor import data_folder_missing, run_checks

    with TemporaryDirectory(prefix="roost-") as folder:
        own = {} if has_other_database(settings) else {"database_url": Sensitive(f"sqlite:///{folder}/roost.db")}
        checked = settings.model_copy(update={"data": Path(folder), **own})
        return [data_folder_missing(settings), *run_checks(checked)]


@api_commands.command("routes")
def list_endpoints(output: Output = OutputFormat.TABLE) -> None:
    """List the endpoints: method, path, credentials, addresses, right, handler."""
    from roost.http.server.application import create_bare_application
    from roost.http.stack.routes import route_table

    rows = route_table(create_bare_application())
    print_rows(rows, ("method", "path", "credentials", "addresses", "right", "handler"), output)


@api_commands.command("openapi")
def print_openapi() -> None:
    """Print the OpenAPI 3.1 description, which a running server has at /openapi."""
    from roost.http.server.application import create_bare_application

    print_json(create_bare_application().openapi())


class ProxyName(StrEnum):
    CADDY = "caddy"
    NGINX = "nginx"
    TRAEFIK = "traefik"


def print_proxy_config(
    program: Annotated[ProxyName, typer.Argument(help="The program in front of Roost.")], data: Data = None
) -> None:
    """Print a configuration for a proxy of yours, which terminates TLS in front of this server.

    It has the domain, the ports and the certificate of the settings.
    """
    from roost.http.tls.proxy_config import ProxySite, render_proxy_config

    settings = load_local_settings(data)
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    files = {"certificate": settings.tls_certificate, "key": settings.tls_key}
    site = ProxySite(
        settings.domain,
        f"{host}:{settings.port}",
        443 if settings.public_port == settings.port else settings.public_port,
        **{name: str(path) for name, path in files.items() if path},
    )
    write_output(render_proxy_config(program.value, site), sys.stdout)


def migrate_database(data: Data = None) -> None:
    """Migrate the database to this version. A server does it when it starts; a job can do it before."""
    from roost import app

    def report(before: str | None, after: str) -> None:
        done = f"Migrated the database from {before} to" if before else "Created the database at"
        print_line(f"The database is at {after} already." if before == after else f"{done} {after}.")

    app.open_database(load_data_folder(data), report).close()


def scrub_content(
    known: Annotated[bool, typer.Option("--known", help="Only list known damage, without reading.")] = False,
    rate: Annotated[float | None, typer.Option(min=0.1, help="Maximum MiB to read per second.")] = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Verify all stored content and list what is damaged of all tenants. Exits with 1 if anything is."""
    from roost import app

    with open_data_folder(data) as (settings, db):
        rows = asyncio.run(_find_damaged(db, app.create_blob_store(settings), known=known, rate=rate))
    if rows or output is not OutputFormat.TABLE:
        print_rows(rows, _DAMAGE_COLUMNS, output)
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
        return dict.fromkeys(_DAMAGE_COLUMNS) | {"id": file}
    tenant = db.run(lambda connection: tenants.get_tenant(connection, file.tenant_id).name)
    name, network = file.metadata.name, file.network
    return {"tenant": tenant, "network": network, "id": file.id, "name": name, "cid": file.cid, "size": file.size}


def run_facilitator(
    rpc: Annotated[str | None, typer.Option(help="RPC address of the chain (ROOST_FACILITATOR_RPC).")] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; another than loopback needs a token.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="Port to listen on; 0 for a free one.", min=0, max=65535)
    ] = _FACILITATOR_PORT,
    data: Data = None,
) -> None:
    """Serve a facilitator of payments for one chain.

    The key of its account is in ROOST_FACILITATOR_KEY, or in the file that ROOST_FACILITATOR_KEY_FILE names.
    """
    from roost import config
    from roost.app.facilitator import build_facilitator_server
    from roost.core import log

    settings = config.load_settings(data=data, facilitator_rpc=rpc)
    server = build_facilitator_server(settings, host)
    log.configure_logging(settings.log_level or ("warning" if sys.stderr.isatty() else "info"))
    asyncio.run(_serve_facilitator(server, host, port))


async def _serve_facilitator(server: "FacilitatorServer", host: str, port: int) -> None:
    from roost.http.server.server import StopRequest, open_listener, stop_on_signals

    listener = open_listener(host, port, "Choose another with --port.")
    stop = StopRequest()
    stop_on_signals(stop)
    shown = f"[{host}]" if ":" in host else host
    print_line(f"Facilitator of {server.network} at http://{shown}:{listener.getsockname()[1]}")
    print_line(f"{server.account} sends the transactions and pays their fees. Press Ctrl-C to stop.")
    await server.http.run_on([listener], stop)
