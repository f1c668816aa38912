"""`roost webhooks ...`: list, create, show, update, delete, rotate-secret, deliveries, redeliver, test."""

from typing import Annotated

import typer

from roost.cli.client.session import Data, load_storage, path_segment
from roost.cli.output.output import (
    ExitCode,
    Output,
    OutputFormat,
    Yes,
    confirm_change,
    exit_with_error,
    print_line,
    print_record,
    print_rows,
)
from roost.cli.storage.file_lookup import fetch_records

commands = typer.Typer()
_Webhook = Annotated[str, typer.Argument(metavar="WEBHOOK", help="The webhook's id.", parser=path_segment)]
_Delivery = Annotated[str, typer.Argument(metavar="DELIVERY", help="The delivery's id.", parser=path_segment)]
_Events = Annotated[
    list[str] | None,
    typer.Option("--event", metavar="TYPE", help="Event type like `ipfs.private.file_added`; can be repeated."),
]
_Description = Annotated[str | None, typer.Option(help="Description of the webhook.")]
_COLUMNS = ("id", "url", "events", "enabled", "disabled_reason", "failing_since")
_DELIVERY_COLUMNS = ("id", "event_type", "state", "attempts", "status", "error", "created_at", "next_attempt_at")


@commands.command("list")
def list_webhooks(data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """List your webhooks."""
    print_rows(load_storage(data).call("GET", "/v3/webhooks")["data"]["webhooks"], _COLUMNS, output)


@commands.command()
def create(
    url: Annotated[str, typer.Argument(metavar="URL", help="URL that receives the messages.")],
    event: _Events = None,
    description: _Description = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Create a webhook for the given events (default: all). Its signing secret is shown only once."""
    body = {"url": url, "events": event or [], "description": description or ""}
    print_record(load_storage(data).call("POST", "/v3/webhooks", body)["data"], output)


@commands.command()
def show(webhook: _Webhook, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Show one webhook."""
    print_record(load_storage(data).call("GET", f"/v3/webhooks/{webhook}")["data"], output)


@commands.command()
def update(
    webhook: _Webhook,
    url: Annotated[str | None, typer.Option(help="URL that receives the messages.")] = None,
    event: _Events = None,
    all_events: Annotated[bool, typer.Option("--all-events", help="Subscribe to all types again.")] = False,
    description: _Description = None,
    enable: Annotated[bool | None, typer.Option("--enable/--disable", help="Turn delivery on or off.")] = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Change a webhook. Enabling it resets its failures and sends pending messages."""
    events = [] if all_events else event
    body = {"url": url, "events": events, "description": description, "enabled": enable}
    given = {name: value for name, value in body.items() if value is not None}
    if not given:
        exit_with_error(
            "Nothing to change: give --url, --event, --all-events, --description, --enable or --disable.",
            ExitCode.USAGE,
        )
    print_record(load_storage(data).call("PUT", f"/v3/webhooks/{webhook}", given)["data"], output)


@commands.command()
def delete(webhook: _Webhook, yes: Yes = False, data: Data = None) -> None:
    """Delete a webhook and its pending messages."""
    confirm_change(f"Delete the webhook {webhook} and its pending messages?", yes)
    load_storage(data).call("DELETE", f"/v3/webhooks/{webhook}")
    print_line("Deleted.")


@commands.command("rotate-secret")
def rotate_secret(webhook: _Webhook, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Create a new signing secret, shown only once; the old one also signs for 24 hours."""
    print_record(load_storage(data).call("POST", f"/v3/webhooks/{webhook}/rotate_secret")["data"], output)


@commands.command()
def deliveries(
    webhook: _Webhook,
    state: Annotated[str | None, typer.Option(help="pending, sending, delivered or failed.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of results.")] = 25,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List a webhook's deliveries of the last 7 days, newest first."""
    server = load_storage(data)
    rows = fetch_records(server, f"webhooks/{webhook}/deliveries", "deliveries", {"state": state}, limit)
    print_rows(rows, _DELIVERY_COLUMNS, output)


@commands.command()
def redeliver(webhook: _Webhook, delivery: _Delivery, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Send a message again now."""
    path = f"/v3/webhooks/{webhook}/deliveries/{delivery}/redeliver"
    print_record(load_storage(data).call("POST", path)["data"], output)


@commands.command("test")
def send_test(webhook: _Webhook, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Send a test message and show its delivery. Exits with 1 if it failed."""
    done = load_storage(data).call("POST", f"/v3/webhooks/{webhook}/test")["data"]
    print_record(done, output)
    if done["state"] != "delivered":
        raise typer.Exit(ExitCode.FAILED)
