"""`roost engines ...`: list, install, remove. Works without a server."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from roost.cli.client.session import Data
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
from roost.cli.server.data_folder import load_local_settings
from roost.core import clock
from roost.core.machine.disk_space import read_disk_space
from roost.core.problem import Problem

if TYPE_CHECKING:
    from roost.drivers.engine.contract import Engine, Progress
    from roost.settings import Settings

_MIB = 1024**2
_LINE_SECONDS = 5.0

commands = typer.Typer()
EngineNames = Annotated[
    list[str] | None,
    typer.Argument(metavar="ENGINE[@VERSION]", help="Engines to install (default: all, at their default version)."),
]


@commands.command("list")
def list_engines(
    available: Annotated[
        bool, typer.Option("--available", help="Also list the versions in the package registry.")
    ] = False,
    data: Data = None,
    output: Output = OutputFormat.TABLE,
) -> None:
    """List the engines and their installed versions."""
    from roost import app

    rows = [
        {
            "id": engine.id,
            "label": engine.label,
            "default": engine.default_version,
            "installed": list(engine.installed()),
        }
        | ({"available": list(engine.available())} if available else {})
        for engine in app.create_engines(load_local_settings(data))
    ]
    shown = ("id", "label", "default", "installed", *(["available"] if available else []))
    print_rows(rows, shown, output)


@commands.command()
def install(
    names: EngineNames = None,
    minimal: Annotated[
        bool,
        typer.Option("--minimal", help="Leave what a start does not need to a later installation."),
    ] = False,
    data: Data = None,
) -> None:
    """Install engines that are not installed yet, and complete those that are."""
    from roost import app

    settings = load_local_settings(data)
    known = {engine.id: engine for engine in app.create_engines(settings)}
    for name in names or list(known):
        engine_id, _, version = name.partition("@")
        if engine_id not in known:
            exit_with_error(f"There is no engine {engine_id!r}; known are {', '.join(known)}.", ExitCode.NOT_FOUND)
        engine = known[engine_id]
        install_version(settings, engine, version or engine.default_version, is_complete=not minimal)


@commands.command()
def remove(
    name: Annotated[str, typer.Argument(metavar="ENGINE@VERSION", help="As listed by `roost engines list`.")],
    yes: Yes = False,
    data: Data = None,
) -> None:
    """Remove an installed version. Agents that use it cannot start until it is installed again."""
    from roost import app

    engine_id, _, version = name.partition("@")
    known = {engine.id: engine for engine in app.create_engines(load_local_settings(data))}
    if engine_id not in known or version not in known[engine_id].installed():
        exit_with_error(f"{name} is not installed.", ExitCode.NOT_FOUND)
    if known[engine_id].images:
        exit_with_error(f"{name} is an image: remove it from the setting engine_images.")
    confirm_change(f"Remove {engine_id} {version}? Agents that use it cannot start without it.", yes)
    known[engine_id].remove(version)
    print_line(f"Removed {engine_id} {version}.")


def install_version(settings: "Settings", engine: "Engine", version: str, *, is_complete: bool = True) -> None:
    """Install one version with a progress bar. Exits with the installer's last lines if it fails."""
    from roost import app

    already = version in engine.installed()
    free = read_disk_space(settings.engines).free
    if not already and free < engine.installed_bytes:
        needed = engine.installed_bytes / _MIB
        exit_with_error(
            f"{engine.label} needs {needed:,.0f} MiB of disk, and {settings.engines} has {free / _MIB:,.0f} MiB free."
        )
    with show_progress(f"{'Checking' if already else 'Installing'} {engine.label} {version}") as progress:
        try:
            engine.install(version, progress)
            if is_complete:
                asyncio.run(app.prepare_engine(settings, engine, version, progress))
        except Problem as problem:
            exit_with_error(problem.message)
    if not already:
        print_line(f"Installed {engine.label} {version}.", error_console)


@contextmanager
def show_progress(description: str) -> "Generator[Progress]":
    """Show a progress bar for the steps that are reported to it; without a terminal, a line now and then."""
    if not error_console.is_terminal:
        yield _print_steps(description)
        return
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as ProgressBar

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with ProgressBar(*columns, console=error_console, transient=True) as bar:
        task = bar.add_task(description, total=None)

        def progress(step: str, fraction: float | None) -> None:
            bar.update(task, description=step, total=None if fraction is None else 1.0, completed=fraction or 0.0)

        yield progress


def _print_steps(description: str) -> "Progress":
    """Print at most one step in some seconds, so that a log stays short."""
    last = -_LINE_SECONDS

    def progress(step: str, _fraction: float | None) -> None:
        nonlocal last
        if clock.monotonic_seconds() - last >= _LINE_SECONDS:
            last = clock.monotonic_seconds()
            print_line(f"{description}: {step}", error_console)

    return progress
