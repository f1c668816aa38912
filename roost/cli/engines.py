"""`roost engines ...`: list, install, remove. Works without a server."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from roost.cli.client import Data
from roost.cli.output import ExitCode, Output, OutputFormat, errors, fail, say, show_rows
from roost.core.problem import Problem

if TYPE_CHECKING:
    from roost.config import Settings
    from roost.drivers.engine.contract import Engine

nouns = typer.Typer(help="The assistant software that agents run.", no_args_is_help=True)
Which = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ENGINE[@VERSION]]...", help="All, at their default version, if none is named."),
]


@nouns.command("list")
def list_engines(
    available: Annotated[bool, typer.Option("--available", help="Also ask the registry what it offers.")] = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List the engines and their installed versions."""
    from roost import app, config

    rows = [
        {
            "id": engine.id,
            "label": engine.label,
            "default": engine.default_version,
            "installed": list(engine.installed()),
        }
        | ({"available": list(engine.available())} if available else {})
        for engine in app.engines(config.load_settings(data=data))
    ]
    shown = ("id", "label", "default", "installed", *(["available"] if available else []))
    show_rows(rows, shown, output)


@nouns.command()
def install(which: Which = None, data: Data = None) -> None:
    """Install engines; what is installed already is left alone."""
    from roost import app, config

    settings = config.load_settings(data=data)
    known = {engine.id: engine for engine in app.engines(settings)}
    for name in which or list(known):
        engine_id, _, version = name.partition("@")
        if engine_id not in known:
            fail(f"There is no engine {engine_id!r}; there are {', '.join(known)}.", ExitCode.NOT_FOUND)
        install_one(settings, known[engine_id], version or known[engine_id].default_version)


@nouns.command()
def remove(
    which: Annotated[str, typer.Argument(metavar="ENGINE@VERSION", help="As `roost engines list` shows it.")],
    data: Data = None,
) -> None:
    """Remove one installed version. Agents that use it cannot start until it is installed again."""
    from roost import app, config

    engine_id, _, version = which.partition("@")
    known = {engine.id: engine for engine in app.engines(config.load_settings(data=data))}
    if engine_id not in known or version not in known[engine_id].installed():
        fail(f"{which} is not installed.", ExitCode.NOT_FOUND)
    known[engine_id].remove(version)
    say(f"Removed {engine_id} {version}.")


def install_one(settings: "Settings", engine: "Engine", version: str) -> None:
    """Install one version with a progress bar; leaves the program with the installer's last lines on failure."""
    from roost import app

    already = version in engine.installed()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True) as bar:
        task = bar.add_task(f"Installing {engine.label} {version}", total=None)

        def progress(what: str, fraction: float | None) -> None:
            bar.update(task, description=what, total=None if fraction is None else 1.0, completed=fraction or 0.0)

        try:
            engine.install(version, progress)
            asyncio.run(app.bake(settings, engine, version, progress))
        except Problem as problem:
            fail(problem.message)
    if not already:
        say(f"Installed {engine.label} {version}.", errors)
