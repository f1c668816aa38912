"""`roost payments ...`: list, totals, and instructions."""

from typing import Annotated

import typer

from roost.cli.client.session import Data, load_storage
from roost.cli.output.output import Output, OutputFormat, print_rows
from roost.cli.storage import payment_instructions
from roost.cli.storage.file_lookup import fetch_records
from roost.storage.payments.model import PaymentState

commands = typer.Typer(help="Ask for payments for private files (x402), and look at them.", no_args_is_help=True)
commands.add_typer(payment_instructions.commands, name="instructions")
_COLUMNS = ("id", "created_at", "state", "amount", "network", "asset", "payer", "cid", "transaction")
_TOTALS = ("payment_instruction_id", "network", "asset", "count", "amount")
_DEFAULT_LIMIT = 100


@commands.command("list")
def list_payments(
    instruction: Annotated[str | None, typer.Option(help="Only payments of this payment instruction.")] = None,
    cid: Annotated[str | None, typer.Option(help="Only payments for this CID.")] = None,
    state: Annotated[PaymentState | None, typer.Option(help="Only payments in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of results.")] = _DEFAULT_LIMIT,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List payments, newest first. Amounts are in the smallest units of the asset."""
    server = load_storage(data)
    query = {"instruction": instruction, "cid": cid, "state": state}
    print_rows(fetch_records(server, "x402/payments", "payments", query, limit), _COLUMNS, output)


@commands.command("totals")
def sum_payments(data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Sum the settled payments by payment instruction and asset."""
    server = load_storage(data)
    print_rows(server.call("GET", "/v3/x402/payments/totals")["data"]["totals"], _TOTALS, output)
