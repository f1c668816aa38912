"""Program that copies SQLite databases in an agent's container. Standard library only.

A copy is the database as it was at one moment, whatever writes to it, without the rows of some tables. It reads JSON
`{"folder", "paths", "cleared"}` from standard input. The copy of a path is named by its number in the folder; a
database that cannot be copied has none. Everything that it reads is as untrusted as the agent.
"""

import json
import shutil
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import closing
from fnmatch import fnmatchcase
from pathlib import Path

_HEADER = b"SQLite format 3\0"
_LARGEST = 1 << 30
_SPARE_BYTES = 64 << 20
_BUSY_SECONDS = 10.0


def main(folder: Path, paths: Sequence[str], cleared: Sequence[str]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    for number, path in enumerate(paths):
        target = folder / str(number)
        try:
            copy_database(folder.parent.parent / path, target, cleared)
        except (OSError, sqlite3.Error) as error:
            target.unlink(missing_ok=True)
            sys.stderr.write(f"{path}: {error}\n")


def copy_database(source: Path, target: Path, cleared: Sequence[str]) -> None:
    """Copy a database without the rows of the tables that match `cleared`. Raises OSError and sqlite3.Error."""
    size = source.stat().st_size
    if size > min(_LARGEST, shutil.disk_usage(target.parent).free - _SPARE_BYTES):
        raise OSError("too large")
    with source.open("rb") as file:
        if file.read(len(_HEADER)) != _HEADER:
            shutil.copyfile(source, target)
            return
    with (
        closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=rw", uri=True, timeout=_BUSY_SECONDS)) as found,
        closing(sqlite3.connect(target)) as copy,
    ):
        found.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
        copy.execute("PRAGMA trusted_schema = OFF")
        copy.execute("PRAGMA secure_delete = ON")  # overwrites the rows
        tables = copy.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'")
        for (name,) in tables.fetchall():
            if any(fnmatchcase(name, pattern) for pattern in cleared):
                quoted = name.replace('"', '""')
                copy.execute(f'DELETE FROM "{quoted}"')  # noqa: S608 - a quoted name
        copy.commit()


if __name__ == "__main__":
    request = json.load(sys.stdin)
    main(Path.home() / request["folder"], request["paths"], request["cleared"])
