"""`roost contexts ...`: list, use, remove. `roost login` adds them."""

from typing import Annotated

import typer

from roost.cli.client.context_file import LOCAL, change_contexts, current_context, overriding_variable, read_contexts
from roost.cli.completion import complete_contexts
from roost.cli.output.output import Output, OutputFormat, Yes, confirm_change, error_console, print_line, print_rows
from roost.cli.server.login import forget_context

commands = typer.Typer(
    help="Choose the server that commands talk to, of those that `roost login` knows.", no_args_is_help=True
)
_Name = Annotated[str, typer.Argument(metavar="NAME", help="The context.", autocompletion=complete_contexts)]


@commands.command("list")
def list_contexts(output: Output = OutputFormat.TABLE) -> None:
    """List the servers that you are logged in to, without their keys; `local` is that of the data folder."""
    file = read_contexts()
    current = current_context(file) or LOCAL
    rows = [{"name": LOCAL, "url": None}, *({"name": name, "url": one.url} for name, one in file.contexts.items())]
    shown = [{**row, "current": "yes" if row["name"] == current else ""} for row in rows]
    print_rows(shown, _COLUMNS, output, [{**row, "current": row["name"] == current} for row in rows])


@commands.command()
def use(name: _Name) -> None:
    """Make a context the current one; `local` is the server of the data folder."""
    with change_contexts() as file:
        where = "the server of the data folder" if name == LOCAL else file.get(name).url
        file.current = None if name == LOCAL else name
    print_line(f"Commands now talk to {where}.")
    if (variable := overriding_variable()) is not None:
        print_line(f"Not in this shell: {variable} comes first. Unset it.", error_console)


@commands.command()
def remove(name: _Name, yes: Yes = False) -> None:
    """Forget a server and its key on this machine. The key stays valid elsewhere."""
    url = read_contexts().get(name).url
    confirm_change(f"Forget the context {name} ({url}) and its key?", yes)
    forget_context(name)


_COLUMNS = ("name", "url", "current")
