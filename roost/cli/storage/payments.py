"""`roost payments ...`: list, totals, and instructions."""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from roost.cli.client.session import Data, drop_none, load_storage, path_segment
from roost.cli.output.output import (
    ExitCode,
    Output,
    OutputFormat,
    Yes,
    confirm_change,
    count_nouns,
    exit_with_error,
    file_errors,
    print_as_document,
    print_line,
    print_record,
    print_rows,
)
from roost.cli.storage.file_lookup import fetch_records
from roost.storage.payments.model import PaymentState

commands = typer.Typer()
instruction_commands = typer.Typer(no_args_is_help=True)
commands.add_typer(
    instruction_commands, name="instructions", help="Manage payment instructions: what must be paid for private files."
)
_Instruction = Annotated[str, typer.Argument(metavar="INSTRUCTION", help="The instruction's id.", parser=path_segment)]
_Cids = Annotated[list[str], typer.Argument(metavar="CID", help="CIDs of your private files.", parser=path_segment)]
_Description = Annotated[str | None, typer.Option(help="Description of the instruction.")]
_PayTo = Annotated[str | None, typer.Option(help="Address that receives the payment.")]
_Amount = Annotated[
    str | None, typer.Option(help="Amount in the asset's smallest units; 10000 is 0.01 USDC.", metavar="UNITS")
]
_Network = Annotated[str, typer.Option(help="Network of the payment, like base or eip155:84532.")]
_Asset = Annotated[str | None, typer.Option(help="Address of the token; by default USDC, on base and base-sepolia.")]
_Requirements = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="File with several payment requirements, as a JSON array; - is standard input."),
]
_Limit = Annotated[int, typer.Option(min=1, help="Maximum number of results.")]
_ROOT = "x402/payment_instructions"
_COLUMNS = ("id", "created_at", "state", "amount", "network", "asset", "payer", "cid", "transaction")
_TOTALS = ("payment_instruction_id", "network", "asset", "count", "amount")
_INSTRUCTION_COLUMNS = ("id", "name", "version", "price", "created_at")


@commands.command("list")
def list_payments(
    instruction: Annotated[str | None, typer.Option(help="Only payments of this payment instruction.")] = None,
    cid: Annotated[str | None, typer.Option(help="Only payments for this CID.")] = None,
    state: Annotated[PaymentState | None, typer.Option(help="Only payments in this state.")] = None,
    limit: _Limit = 100,
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


@instruction_commands.command("list")
def list_instructions(
    name: Annotated[str | None, typer.Option(help="Only names that contain this text.")] = None,
    cid: Annotated[str | None, typer.Option(help="Only the instruction that is attached to this CID.")] = None,
    limit: _Limit = 100,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List your payment instructions."""
    server = load_storage(data)
    found = fetch_records(server, _ROOT, "payment_instructions", {"name": name, "cid": cid}, limit)
    print_rows(map(_format_prices, found), _INSTRUCTION_COLUMNS, output, found)


@instruction_commands.command("create")
def create_instruction(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the instruction.")],
    pay_to: _PayTo = None,
    amount: _Amount = None,
    network: _Network = "base",
    asset: _Asset = None,
    requirements: _Requirements = None,
    description: _Description = None,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Create a payment instruction, with one requirement or those of a file."""
    wanted = _read_requirements(pay_to, amount, network, asset, requirements)
    if wanted is None:
        exit_with_error("Give `--pay-to` and `--amount`, or `--requirements`.", ExitCode.USAGE)
    body = drop_none({"name": name, "payment_requirements": wanted, "description": description})
    server = load_storage(data)
    _print_instruction(server.call("POST", f"/v3/{_ROOT}", body)["data"], output)


@instruction_commands.command("show")
def show_instruction(instruction: _Instruction, data: Data = None, output: Output = OutputFormat.TABLE) -> None:
    """Show one payment instruction; `cids` lists what it is attached to."""
    server = load_storage(data)
    _print_instruction(server.call("GET", f"/v3/{_ROOT}/{instruction}")["data"], output)


@instruction_commands.command("update")
def update_instruction(
    instruction: _Instruction,
    name: Annotated[str | None, typer.Option(help="A new name.")] = None,
    pay_to: _PayTo = None,
    amount: _Amount = None,
    network: _Network = "base",
    asset: _Asset = None,
    requirements: _Requirements = None,
    description: _Description = None,
    yes: Yes = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Change the given fields of a payment instruction; new requirements replace all present ones."""
    wanted = _read_requirements(pay_to, amount, network, asset, requirements)
    body = drop_none({"name": name, "payment_requirements": wanted, "description": description})
    server = load_storage(data)
    cids_path = f"{_ROOT}/{instruction}/cids"
    if wanted is not None and not yes and (sold := fetch_records(server, cids_path, "cids", {}, None)):
        confirm_change(f"Readers of {count_nouns(len(sold), 'file')} then pay by these terms. Change them?", yes)
    _print_instruction(server.call("PATCH", f"/v3/{_ROOT}/{instruction}", body)["data"], output)


@instruction_commands.command("delete")
def delete_instruction(instruction: _Instruction, yes: Yes = False, data: Data = None) -> None:
    """Delete a payment instruction that is attached to no CID."""
    confirm_change(f"Delete the payment instruction {instruction}?", yes)
    load_storage(data).call("DELETE", f"/v3/{_ROOT}/{instruction}")
    print_line("Deleted.")


@instruction_commands.command("cids")
def list_cids(
    instruction: _Instruction, limit: _Limit = 100, data: Data = None, output: Output = OutputFormat.TABLE
) -> None:
    """List the CIDs that a payment instruction is attached to."""
    server = load_storage(data)
    found: Sequence[Any] = fetch_records(server, f"{_ROOT}/{instruction}/cids", "cids", {}, limit)
    print_rows([{"cid": cid} for cid in found], ("cid",), output)


@instruction_commands.command("attach")
def attach_instruction(instruction: _Instruction, cids: _Cids, yes: Yes = False, data: Data = None) -> None:
    """Attach a payment instruction to private files, by CID."""
    confirm_change(f"Everyone who pays can then read {count_nouns(len(cids), 'private file')}. Sell?", yes)
    server = load_storage(data)
    for cid in cids:
        server.call("PUT", f"/v3/{_ROOT}/{instruction}/cids/{cid}")
    print_line(f"Attached to {len(cids)}.")


@instruction_commands.command("detach")
def detach_instruction(instruction: _Instruction, cids: _Cids, yes: Yes = False, data: Data = None) -> None:
    """Detach a payment instruction from private files, by CID."""
    confirm_change(f"No one can then buy {count_nouns(len(cids), 'file')} with {instruction}. Detach it?", yes)
    server = load_storage(data)
    for cid in cids:
        server.call("DELETE", f"/v3/{_ROOT}/{instruction}/cids/{cid}")
    print_line(f"Detached from {len(cids)}.")


def _read_requirements(
    pay_to: str | None, amount: str | None, network: str, asset: str | None, file: str | None
) -> Any:
    """Return the payment requirements of the options, None without any."""
    if file is not None:
        if pay_to or amount or asset:
            exit_with_error("Give `--requirements`, or one requirement by options.", ExitCode.USAGE)
        return _read_file(file)
    if pay_to is None and amount is None and asset is None:
        return None
    if pay_to is None or amount is None:
        exit_with_error("`--pay-to` and `--amount` belong together.", ExitCode.USAGE)
    return [{"asset": asset or _find_usdc(network), "pay_to": pay_to, "network": network, "amount": amount}]


def _read_file(file: str) -> Any:
    with file_errors(file):
        try:
            return json.loads(sys.stdin.read() if file == "-" else Path(file).read_text())
        except ValueError as error:
            exit_with_error(f"{file} is not JSON: {error}", ExitCode.USAGE)


def _find_usdc(network: str) -> str:
    """Return the address of USDC on a built-in network. Exits for others."""
    from roost.storage.payments.instructions.model import BUILT_IN

    found = [asset.address for asset in BUILT_IN if network in (asset.network.name, asset.network.caip2)]
    if not found:
        exit_with_error(f"`--asset` is required on {network}.", ExitCode.USAGE)
    return found[0]


def _print_instruction(record: Mapping[str, Any], output: OutputFormat) -> None:
    """Print a record, its requirements in words unless the output is JSON."""
    if not print_as_document(record, output):
        requirements = [_describe_requirement(one) for one in record["payment_requirements"]]
        print_record({**record, "payment_requirements": requirements}, output)


def _describe_requirement(requirement: Mapping[str, Any]) -> str:
    text = "{amount} of {asset} on {network} to {pay_to}".format_map(requirement)
    return f"{text} ({requirement['description']})" if requirement["description"] else text


def _format_prices(record: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**record, "price": [f"{one['amount']} on {one['network']}" for one in record["payment_requirements"]]}
