"""The data folder of this machine, for commands that work without a server."""

import os
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from roost.cli.client.context_file import LOCAL, selected_context
from roost.cli.output.output import ExitCode, exit_with_error

if TYPE_CHECKING:
    from roost.core.db import Database
    from roost.settings import Settings


def load_local_settings(data: Path | None) -> "Settings":
    """Return the settings of this machine for a command without a server. Exits if another server was named."""
    from roost import config

    if data is None and (named := _name_elsewhere()):
        source, advice = named
        exit_with_error(
            f"{source} names another server, but this command works on a data folder of this machine: run it there, "
            f"{advice}, or name the folder with --data.",
            ExitCode.USAGE,
        )
    return config.load_settings(data=data)


def has_other_database(settings: "Settings") -> bool:
    """Return whether the settings name a database that is not in the data folder."""
    return settings.database_url.reveal() != f"sqlite:///{settings.data / 'roost.db'}"


def is_data_folder(settings: "Settings") -> bool:
    """Return whether the folder has a database, or belongs to one elsewhere."""
    known = any((settings.data / name).exists() for name in ("roost.db", "stores.json"))
    return settings.data.is_dir() and (known or has_other_database(settings))


def load_data_folder(data: Path | None, *, create: bool = False) -> "Settings":
    """Return the settings of a data folder of this machine. Exits if it is none.

    `create` accepts an empty folder, too, because a key can be created before the first start.
    """
    settings = load_local_settings(data)
    if not is_data_folder(settings) and not (create and _is_prepared(settings.data)):
        exit_with_error(
            f"{settings.data} is no data folder of Roost. `roost up` creates one; --data or ROOST_DATA names another.",
            ExitCode.USAGE,
        )
    return settings


@contextmanager
def open_data_folder(data: Path | None, *, create: bool = False) -> "Generator[tuple[Settings, Database]]":
    """Load the settings of a data folder, as `load_data_folder`, and open its database."""
    from roost import app

    settings = load_data_folder(data, create=create)
    with closing(app.open_database(settings)) as db:
        yield settings, db


def _is_prepared(folder: Path) -> bool:
    """Return whether there is a folder with nothing but settings."""
    return folder.is_dir() and all(entry.name == "roost.toml" for entry in folder.iterdir())


def _name_elsewhere() -> tuple[str, str] | None:
    """Return what explicitly names another server, and how to undo it; a current context does not."""
    option, name = selected_context(), os.environ.get("ROOST_CONTEXT")
    if option is not None:
        return None if option == LOCAL else ("--context", "leave out --context")
    if os.environ.get("ROOST_URL"):
        return "ROOST_URL", "unset ROOST_URL"
    return ("ROOST_CONTEXT", "unset ROOST_CONTEXT") if name and name != LOCAL else None
