"""`roost keys ...`: create, list, revoke. Speaks to the database itself, so it works with and without a server."""

import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from roost.cli.client import Data
from roost.cli.output import Exit, Form, Output, fail, screen, show_rows
from roost.core import clock
from roost.core.problem import Problem
from roost.identity.caller import Plan
from roost.identity.model import DEFAULT_TENANT, KEY_LIFETIME

if TYPE_CHECKING:
    from sqlalchemy import Connection

nouns = typer.Typer(help="API keys: the service JWTs of a tenant.", no_args_is_help=True)
Tenant = Annotated[str, typer.Option(help="The tenant's name; made when it is new.")]


@nouns.command()
def create(
    tenant: Tenant = DEFAULT_TENANT,
    name: Annotated[str, typer.Option(help="What the key is for.")] = "key",
    scope: Annotated[list[str] | None, typer.Option(help="Limit the key to this scope; repeat for more.")] = None,
    plan: Annotated[Plan | None, typer.Option(help="Also set the tenant's plan.")] = None,
    days: Annotated[int, typer.Option(min=1, max=3650, help="How long it is good.")] = KEY_LIFETIME.days,
    data: Data = None,
) -> None:
    """Create a key and print its JWT, alone, on standard output. It is not shown again."""
    from roost import app, config
    from roost.identity import tenants
    from roost.identity.keys import Keys
    from roost.keyring import sealer

    settings = config.load(data=data)
    db = app.open_database(settings)

    def issue(connection: "Connection") -> str:
        owner = tenants.ensure(connection, tenant, plan)
        keys = Keys(db, sealer(settings))
        return keys.issue(
            connection, owner, name, scopes=frozenset(scope or ()), lifetime=timedelta(days=days)
        ).reveal()

    try:
        sys.stdout.write(db.run(issue) + "\n")
    except Problem as problem:
        fail(problem.message, Exit.USAGE)
    finally:
        db.close()


@nouns.command("list")
def list_keys(tenant: Tenant = DEFAULT_TENANT, data: Data = None, output: Output = Form.TABLE) -> None:
    """List a tenant's keys, without their tokens."""
    from roost import app, config
    from roost.identity.keys import Keys

    settings = config.load(data=data)
    db = app.open_database(settings)
    keys = db.run(lambda connection: Keys.of(connection, tenant))
    db.close()
    rows = [
        {
            "id": key.id,
            "name": key.name,
            "scopes": sorted(key.scopes),
            "createdAt": clock.iso(key.created_at),
            "expiresAt": clock.iso(key.expires_at),
            "revoked": key.revoked_at is not None,
        }
        for key in keys
    ]
    show_rows(rows, ("id", "name", "scopes", "expiresAt", "revoked"), output)


@nouns.command()
def revoke(key_id: Annotated[str, typer.Argument(metavar="ID")], data: Data = None) -> None:
    """Revoke a key; a running server refuses it within a second."""
    from roost import app, config
    from roost.identity.keys import Keys

    settings = config.load(data=data)
    db = app.open_database(settings)
    done = db.run(lambda connection: Keys.end(connection, key_id))
    db.close()
    if not done:
        fail(f"There is no live key {key_id!r}.", Exit.NOT_FOUND)
    screen.print("Revoked.")
