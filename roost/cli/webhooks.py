"""`roost webhooks ...`: list, create, show, update, delete, rotate-secret, deliveries, redeliver, test."""

from typing import Annotated

import typer

from roost.cli.client import Data, segment, session
from roost.cli.files import listed
from roost.cli.output import ExitCode, Output, OutputFormat, fail, say, show_record, show_rows

nouns = typer.Typer(help="Addresses that are told what happens to your files.", no_args_is_help=True)
_Webhook = Annotated[str, typer.Argument(metavar="WEBHOOK", help="The webhook's id.", parser=segment)]
_Delivery = Annotated[str, typer.Argument(metavar="DELIVERY", help="The delivery's id.", parser=segment)]
_Events = Annotated[
    list[str] | None, typer.Option("--event", metavar="TYPE", help="A type like `ipfs.private.file_added`; repeat it.")
]
_Description = Annotated[str | None, typer.Option(help="A note for yourself.")]
_COLUMNS = ("id", "url", "events", "enabled", "disabled_reason", "failing_since")
_DELIVERIES = ("id", "event_type", "state", "attempts", "status", "error", "created_at", "next_attempt_at")
_LIMIT = 25


@nouns.command("list")
def list_webhooks(data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List your webhooks."""
    show_rows(session(data).storage().call("GET", "/v3/webhooks")["data"]["webhooks"], _COLUMNS, output)


@nouns.command()
def create(
    url: Annotated[str, typer.Argument(metavar="URL", help="Where messages go.")],
    event: _Events = None,
    description: _Description = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Have an address told of events; of all, where none is named. The secret that signs is shown this once."""
    body = {"url": url, "events": event or [], "description": description or ""}
    show_record(session(data).storage().call("POST", "/v3/webhooks", body)["data"], output)


@nouns.command()
def show(webhook: _Webhook, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Show one webhook."""
    show_record(session(data).storage().call("GET", f"/v3/webhooks/{webhook}")["data"], output)


@nouns.command()
def update(
    webhook: _Webhook,
    url: Annotated[str | None, typer.Option(help="Where messages go.")] = None,
    event: _Events = None,
    all_events: Annotated[bool, typer.Option("--all-events", help="Tell of all types again.")] = False,
    description: _Description = None,
    enable: Annotated[bool | None, typer.Option("--enable/--disable", help="Send messages, or none.")] = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Change a webhook. To enable one forgives it all failures, and sends what still waits."""
    events = [] if all_events else event
    body = {"url": url, "events": events, "description": description, "enabled": enable}
    given = {name: value for name, value in body.items() if value is not None}
    if not given:
        fail("Say what to change: --url, --event, --all-events, --description, --enable or --disable.", ExitCode.USAGE)
    show_record(session(data).storage().call("PUT", f"/v3/webhooks/{webhook}", given)["data"], output)


@nouns.command()
def delete(webhook: _Webhook, data: Data = None) -> None:
    """Delete a webhook; what waits for it is not sent."""
    session(data).storage().call("DELETE", f"/v3/webhooks/{webhook}")
    say("Deleted.")


@nouns.command("rotate-secret")
def rotate_secret(webhook: _Webhook, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Sign with a new secret, shown this once; the one before signs beside it for 24 hours."""
    show_record(session(data).storage().call("POST", f"/v3/webhooks/{webhook}/rotate_secret")["data"], output)


@nouns.command()
def deliveries(
    webhook: _Webhook,
    state: Annotated[str | None, typer.Option(help="pending, sending, delivered or failed.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = _LIMIT,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List what a webhook was told in the last 7 days, the newest first, and what became of it."""
    here = session(data).storage()
    rows = listed(here, f"webhooks/{webhook}/deliveries", "deliveries", {"state": state}, limit)
    show_rows(rows, _DELIVERIES, output)


@nouns.command()
def redeliver(webhook: _Webhook, delivery: _Delivery, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Send a message again, now."""
    path = f"/v3/webhooks/{webhook}/deliveries/{delivery}/redeliver"
    show_record(session(data).storage().call("POST", path)["data"], output)


@nouns.command("test")
def try_out(webhook: _Webhook, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Send one message of no event, and tell what became of it. Exits with 1 when it was not taken."""
    done = session(data).storage().call("POST", f"/v3/webhooks/{webhook}/test")["data"]
    show_record(done, output)
    if done["state"] != "delivered":
        raise typer.Exit(ExitCode.FAILED)
