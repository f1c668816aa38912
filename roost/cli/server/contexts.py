"""`roost login`, `roost logout` and `roost contexts ...`: servers and their keys, kept on this machine as contexts.

A key is read from the terminal without echo or from standard input, never from an argument, which other users of the
machine and the history of the shell would see.
"""

import sys
from typing import Annotated, NoReturn
from urllib.parse import urlsplit

import typer

from roost.cli.client.context_file import (
    LOCAL,
    ServerContext,
    change_contexts,
    contexts_path,
    current_context,
    is_loopback,
    overriding_variable,
    read_contexts,
    selected_context,
    validate_context_name,
)
from roost.cli.client.session import ServerSession
from roost.cli.completion import complete_contexts
from roost.cli.output.output import (
    ExitCode,
    Output,
    OutputFormat,
    Yes,
    confirm_change,
    error_console,
    exit_with_error,
    print_line,
    print_rows,
)
from roost.core.sensitive import Sensitive

commands = typer.Typer()
_Name = Annotated[str, typer.Argument(metavar="NAME", help="The context.", autocompletion=complete_contexts)]
_COLUMNS = ("name", "url", "current")
_MAX_KEY_BYTES = 8192
_TIMEOUT_SECONDS = 30.0


def log_in(
    url: Annotated[
        str | None,
        typer.Argument(metavar="URL", help="Any address of the server (default: that of the current context)."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            "--key", metavar="-", help="Read the key from standard input (default: ask for it on a terminal)."
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the context (default: the server's host name).")] = None,
) -> None:
    """Check a key with a server and keep both as a context, which is used from now on."""
    if key not in (None, "-"):
        exit_with_error(
            "A key is no argument, because others could read it in the list of processes: give `--key -` and the key "
            "on standard input.",
            ExitCode.USAGE,
        )
    file = read_contexts()
    chosen = name or selected_context() or (file.current if url is None else None)
    if url is None:
        if chosen is None or chosen == LOCAL:
            exit_with_error("Give the address of the server: `roost login https://agents.example.com`.", ExitCode.USAGE)
        url = file.get(chosen).url
    origin = _parse_origin(url)
    context = validate_context_name(chosen or _default_name(origin))
    if context in file.contexts and file.contexts[context].url != origin:
        exit_with_error(
            f"The context {context!r} is the server at {file.contexts[context].url}: choose another --name, or remove "
            f"it with `roost contexts remove {context}`.",
            ExitCode.USAGE,
        )
    server = ServerSession(
        origin, Sensitive(_read_key(origin)), key_advice="create one with `roost keys create`"
    ).locate()
    server.storage_session().call("GET", "/v3/data/testAuthentication", timeout_seconds=_TIMEOUT_SECONDS)
    with change_contexts() as changed:
        changed.contexts[context] = ServerContext(origin, server.token)
        changed.current = context
    print_line(f"Logged in to {origin}. The context is {context}; its key is in {contexts_path()}.", error_console)


def log_out(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="The context (default: the current one).", autocompletion=complete_contexts
        ),
    ] = None,
) -> None:
    """Forget a server and its key on this machine. The key stays valid elsewhere."""
    chosen = name or current_context(read_contexts())
    if chosen is None or chosen == LOCAL:
        exit_with_error("There is no current context: name one of `roost contexts list`.", ExitCode.USAGE)
    forget_context(chosen)


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


def forget_context(name: str) -> None:
    """Remove a context and its key from the file. Exits if there is none."""
    with change_contexts() as file:
        url = file.get(name).url
        del file.contexts[name]
        if file.current == name:
            file.current = None
    print_line(
        f"Forgot {name} and its key. {url} still accepts the key: revoke it there, or with another key of yours "
        "(`roost keys list`, `roost keys revoke ID`)."
    )


def _parse_origin(url: str) -> str:
    """Return scheme, host and port. Exits for other URLs; a host alone is an HTTPS server."""
    import httpx2 as httpx  # slow to import

    try:
        parsed = httpx.URL(url if "://" in url else f"https://{url}")
    except httpx.InvalidURL:
        _exit_with_invalid_url("")
    if parsed.scheme not in ("http", "https") or not parsed.host:
        _exit_with_invalid_url("")
    if parsed.userinfo or parsed.query or parsed.fragment or parsed.path not in ("", "/"):
        _exit_with_invalid_url(": leave out what is not scheme, host and port")
    if parsed.scheme == "http" and not is_loopback(parsed.host):
        print_line(f"Warning: {parsed.host} is reached without TLS, so the network can read the key.", error_console)
    return str(parsed.copy_with(path="/")).rstrip("/")


def _exit_with_invalid_url(reason: str) -> NoReturn:
    exit_with_error(f"The address must be like https://agents.example.com{reason}.", ExitCode.USAGE)


def _default_name(origin: str) -> str:
    """Return `agents.example.com`, or `127.0.0.1-8642` for a port that is not the usual one."""
    url = urlsplit(origin)
    host = (url.hostname or "").replace(":", "-").strip("-")
    return f"{host}-{url.port}" if url.port else host


def _read_key(origin: str) -> str:
    if sys.stdin.isatty():
        text = str(typer.prompt(f"Key for {origin}", hide_input=True, err=True))
    else:
        text = sys.stdin.read(_MAX_KEY_BYTES)
    key = text.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        exit_with_error("The key must be one line, as `roost keys create` prints it.", ExitCode.USAGE)
    return key
