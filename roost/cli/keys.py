"""`roost keys ...`: create, list, revoke. Uses the database directly, so it works without a running server."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roost.cli.client import Data
from roost.cli.data_folder import load_data_folder
from roost.cli.output import (
    ExitCode,
    Output,
    OutputFormat,
    Yes,
    confirm_change,
    exit_with_error,
    print_line,
    print_rows,
)
from roost.core import clock
from roost.identity.caller import Plan
from roost.identity.model import DEFAULT_TENANT, KEY_LIFETIME

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from roost.core.db import Database
    from roost.settings import Settings

commands = typer.Typer(help="Manage API keys, the JWTs of a tenant.", no_args_is_help=True)
Tenant = Annotated[str, typer.Option(help="The tenant's name.")]


@commands.command()
def create(
    tenant: Annotated[str, typer.Option(help="The tenant's name; created if it is new.")] = DEFAULT_TENANT,
    name: Annotated[str, typer.Option(help="Name of the key.")] = "key",
    scope: Annotated[list[str] | None, typer.Option(help="Limit the key to this scope; can be repeated.")] = None,
    plan: Annotated[Plan | None, typer.Option(help="Also set the tenant's plan.")] = None,
    days: Annotated[int, typer.Option(min=1, max=3650, help="Days until it expires.")] = KEY_LIFETIME.days,
    data: Data = None,
) -> None:
    """Create a key and print only its JWT on standard output. It is not shown again."""
    from roost.identity import tenants
    from roost.identity.api_keys import ApiKeys
    from roost.keyring import load_sealer

    with _database(data, create=True) as (settings, db):
        keys, scopes, lifetime = ApiKeys(db, load_sealer(settings, db)), frozenset(scope or ()), timedelta(days=days)

        def issue(connection: "Connection") -> str:
            owner = tenants.ensure_tenant(connection, tenant, plan)
            return keys.issue(connection, owner, name, scopes=scopes, lifetime=lifetime).reveal()

        sys.stdout.write(db.run(issue) + "\n")


@commands.command("list")
def list_keys(tenant: Tenant = DEFAULT_TENANT, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List a tenant's keys, without their tokens."""
    from roost.identity.api_keys import ApiKeys

    with _database(data) as (_, db):
        keys = db.run(lambda connection: ApiKeys.list_tenant_keys(connection, tenant))
    rows = [
        {
            "id": key.id,
            "name": key.name,
            "scopes": sorted(key.scopes),
            "createdAt": clock.format_iso(key.created_at),
            "expiresAt": clock.format_iso(key.expires_at),
            "revoked": key.revoked_at is not None,
        }
        for key in keys
    ]
    print_rows(rows, ("id", "name", "scopes", "expiresAt", "revoked"), output)


@commands.command()
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="Id, as in `roost keys list`.")],
    yes: Yes = False,
    data: Data = None,
) -> None:
    """Revoke a key; a running server rejects it within a second."""
    from roost.identity.api_keys import ApiKeys

    confirm_change(f"Revoke the key {key_id}?", yes)
    with _database(data) as (_, db):
        done = db.run(lambda connection: ApiKeys.delete(connection, key_id))
    if not done:
        exit_with_error(f"There is no active key {key_id!r}.", ExitCode.NOT_FOUND)
    print_line("Revoked.")


@contextmanager
def _database(data: Path | None, *, create: bool = False) -> "Generator[tuple[Settings, Database]]":
    """Open the database; with `create` also in an empty folder."""
    from roost import app

    settings = load_data_folder(data, create=create)
    db = app.open_database(settings)
    try:
        yield settings, db
    finally:
        db.close()
