"""`roost payments ...`: what must be paid for private files."""

import typer

from roost.cli import payment_instructions

commands = typer.Typer(help="Ask for payments for private files (x402).", no_args_is_help=True)
commands.add_typer(payment_instructions.commands, name="instructions")
