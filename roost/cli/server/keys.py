"""`roost keys ...`: create, list, revoke.

On the server's own machine they use the database, so they work without a running server and for every tenant. For a
server elsewhere they use the API, for the tenant of the caller's key.
"""

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roost.cli.client.session import Data, ServerSession, load_remote_session, path_segment
from roost.cli.output.output import (
    ExitCode,
    Output,
    OutputFormat,
    Yes,
    confirm_change,
    exit_with_error,
    exit_with_unknown,
    print_line,
    print_rows,
)
from roost.cli.server.data_folder import open_data_folder
from roost.core import clock
from roost.identity.caller import Plan
from roost.identity.model import DEFAULT_TENANT, KEY_LIFETIME, SCOPES

if TYPE_CHECKING:
    from sqlalchemy import Connection


commands = typer.Typer()
Tenant = Annotated[str | None, typer.Option(help=f"The tenant's name (default: {DEFAULT_TENANT}).")]
_COLUMNS = ("id", "name", "scopes", "expiresAt", "revoked")
_PATH = "/v3/pinata/keys"
_SCOPE_HELP = f"Limit the key to this scope; can be repeated. Scopes are {', '.join(SCOPES)}."


@commands.command()
def create(
    tenant: Annotated[
        str | None, typer.Option(help=f"The tenant's name (default: {DEFAULT_TENANT}); created if it is new.")
    ] = None,
    name: Annotated[str, typer.Option(help="Name of the key.")] = "key",
    scope: Annotated[list[str] | None, typer.Option(help=_SCOPE_HELP, autocompletion=lambda: list(SCOPES))] = None,
    plan: Annotated[Plan | None, typer.Option(help="Also set the tenant's plan.")] = None,
    days: Annotated[
        int | None, typer.Option(min=1, max=3650, help=f"Days until it expires (default: {KEY_LIFETIME.days}).")
    ] = None,
    data: Data = None,
) -> None:
    """Create a key and print only its JWT on standard output. It is not shown again."""
    if server := load_remote_session(data):
        _refuse_local_options(server, {"--tenant": tenant, "--plan": plan, "--days": days})
        body = {"keyName": name, "permissions": {"resources": scope} if scope else {"admin": True}}
        sys.stdout.write(f"{server.storage_session().call('POST', _PATH, body)['JWT']}\n")
        return
    from roost.identity import tenants
    from roost.identity.api_keys import ApiKeys
    from roost.keyring import load_sealer

    with open_data_folder(data, create=True) as (settings, db):
        keys, scopes = ApiKeys(db, load_sealer(settings, db)), frozenset(scope or ())
        lifetime = KEY_LIFETIME if days is None else timedelta(days=days)

        def issue(connection: "Connection") -> str:
            owner = tenants.ensure_tenant(connection, tenant or DEFAULT_TENANT, plan)
            return keys.issue(connection, owner, name, scopes=scopes, lifetime=lifetime).reveal()

        sys.stdout.write(db.run(issue) + "\n")


@commands.command("list")
def list_keys(tenant: Tenant = None, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List a tenant's keys, without their tokens."""
    if server := load_remote_session(data):
        _refuse_local_options(server, {"--tenant": tenant})
        found = list(_fetch_keys(server.storage_session()))
        print_rows(found, ("id", "name", "scopes", "createdAt", "revoked"), output)
        return
    print_rows(_list_here(data, tenant), _COLUMNS, output)


@commands.command()
def revoke(
    key: Annotated[
        str, typer.Argument(metavar="KEY", help="Id, name, or the first characters of one, as in `roost keys list`.")
    ],
    tenant: Tenant = None,
    rotate_tokens: Annotated[
        bool, typer.Option("--rotate-tokens", help="Also replace the gateway tokens that its holder has read.")
    ] = False,
    yes: Yes = False,
    data: Data = None,
) -> None:
    """Revoke a key; a running server rejects it within a second.

    Gateway tokens of agents outlive the key that read them: the agents are named. Use the command again to replace the
    tokens later.
    """
    if server := load_remote_session(data):
        _refuse_local_options(server, {"--tenant": tenant})
        found = _find_key(key, list(_fetch_keys(server.storage_session())))
        confirm_change(f"Revoke the key {found['name']} ({found['id']})?", yes)
        path = f"/v0/keys/{path_segment(found['id'])}/revoke"
        known = server.call("POST", path, {"rotateTokens": rotate_tokens})["agents"]
        agents = {one["agentId"]: one["agentName"] for one in known}
    else:
        rows = _list_here(data, tenant)
        is_elsewhere = tenant is None and not _match_keys(key, rows)  # an id is of any tenant
        found = {"id": key, "name": "of another tenant"} if is_elsewhere else _find_key(key, rows)
        confirm_change(f"Revoke the key {found['name']} ({found['id']})?", yes)
        agents = _revoke_here(data, found["id"], rotates=rotate_tokens)
    print_line("Revoked.")
    if agents:
        names = ", ".join(f"{name} ({agent_id})" for agent_id, name in agents.items())
        done = "were replaced" if rotate_tokens else "still work; replace them with --rotate-tokens"
        print_line(f"The gateway tokens that its holder has read {done}: {names}.")


def _find_key(given: str, keys: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the key with that id or name, or the only one that begins so; revoked ones have no name any more."""
    found = _match_keys(given, keys)
    if not found:
        names = [key["name"] for key in keys if not key["revoked"]]
        exit_with_unknown("key", given, names, "roost keys list")
    if len(found) > 1:
        ids = ", ".join(key["id"] for key in found)
        exit_with_error(f"{len(found)} keys are called {given!r}, or begin so: use the id ({ids}).", ExitCode.USAGE)
    return found[0]


def _match_keys(given: str, keys: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    open_keys = [key for key in keys if not key["revoked"]]
    found = [key for key in keys if key["id"] == given]
    found = found or [key for key in open_keys if key["name"] == given]
    begins_so = [key for key in open_keys if key["id"].startswith(given) or key["name"].startswith(given)]
    return found or (begins_so if given else [])  # every key begins with an empty variable of a script


def _list_here(data: Path | None, tenant: str | None) -> list[dict[str, Any]]:
    from roost.identity.api_keys import ApiKeys

    with open_data_folder(data) as (_, db):
        keys = db.run(lambda connection: ApiKeys.list_tenant_keys(connection, tenant or DEFAULT_TENANT))
    return [
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


def _revoke_here(data: Path | None, key_id: str, *, rotates: bool) -> Mapping[str, str]:
    """Revoke a key in the database; return the agents, by id, whose tokens its holder has read."""
    from roost.agents.lifecycle.key_revocation.service import KeyRevocation
    from roost.agents.registry.repository import AgentRepository
    from roost.identity.api_keys import ApiKeys
    from roost.identity.errors import ApiKeyNotFound
    from roost.identity.gateway_tokens import GatewayTokens, TokenReads
    from roost.keyring import load_sealer

    with open_data_folder(data) as (settings, db):
        sealer = load_sealer(settings, db)
        keys, tokens = ApiKeys(db, sealer), GatewayTokens(db, sealer)
        revocation = KeyRevocation(keys, tokens, TokenReads(db, tokens), AgentRepository(db, sealer, {}, host_id=""))
        try:
            reads = asyncio.run(revocation.revoke(None, key_id, rotates=rotates))
        except ApiKeyNotFound:
            exit_with_unknown("key", key_id, [], "roost keys list")
    return {read.agent_id: name for name, read in reads}


def _refuse_local_options(server: ServerSession, options: Mapping[str, object]) -> None:
    """Exit if an option was given that the API does not have."""
    for name, value in options.items():
        if value is not None:
            exit_with_error(
                f"{name} works on the server's own machine only, and this command talks to {server.url}. There: `roost "
                "--context local keys ...`.",
                ExitCode.USAGE,
            )


def _fetch_keys(server: ServerSession) -> Iterator[dict[str, Any]]:
    """Yield the keys of the caller's tenant, with their scopes as they are listed on the server's machine."""
    offset = 0
    while (page := server.call("GET", f"{_PATH}?offset={offset}"))["keys"]:
        for key in page["keys"]:
            yield {**key, "scopes": key["scopes"]["resources"]}
        offset += len(page["keys"])
        if offset >= page["count"]:
            return
