"""Which files of an engine's home snapshots save: data of the drivers, and the matching of paths."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, cast

_PLATFORM_FILES = ("*.rejected",)
_CREDENTIALS = """
    .env* *auth*.json* *oauth* *credential* *token*.json* *secret*.json* *.key *.pem *.p12 id_rsa* id_ed25519*
""".split()
_MACHINE_FILES = "*.lock *.lock.* *.pid *.sock *.log *.tmp *.bak *.bak.* logs tmp node_modules".split()
_CACHES = ("cache", ".cache", "*_cache", "*_cache.json", "*-cache", "__pycache__")
_EVERYWHERE = (*_PLATFORM_FILES, *_CREDENTIALS, *_MACHINE_FILES, *_CACHES)
DATABASE_FILES = ("-wal", "-shm", "-journal")
"""Ends of the names of files beside an SQLite database, which belong to it."""

_SECRET_NAME = re.compile(
    r"(?i:(api|private|access|secret|signing)[_-]?keys?|token|secret|password|passwd|passphrase|authorization|cookie)$"
    r"|(^|[_-])(?i:key)$"
)
_REFERENCE = re.compile(r"\$\{\w+\}")


def is_secret(name: str, value: str) -> bool:
    """Return whether a setting of that name is a credential, unless its value refers to a variable."""
    return bool(value and _SECRET_NAME.search(name)) and not _REFERENCE.fullmatch(value)


def without_secrets(value: Any) -> Any:
    """Return a JSON value without the settings that are credentials, at any depth."""
    if isinstance(value, dict):
        settings = cast("dict[str, Any]", value)
        return {
            name: without_secrets(one)
            for name, one in settings.items()
            if not (isinstance(one, str) and is_secret(name, one))
        }
    return [without_secrets(one) for one in cast("list[Any]", value)] if isinstance(value, list) else value


@dataclass(frozen=True)
class SavedState:
    """What a snapshot saves of an engine's home. Patterns are those of `fnmatch`.

    folders: relative to the home. excluded: names at any depth, or with a slash paths from the home, of what is left
    out: credentials, and what belongs to one container; `_EVERYWHERE` is too. databases: names of SQLite databases,
    which are copied as they were at one moment. cleared_tables: of their tables, those that are saved without rows.
    configuration: the file that `Engine.redact_configuration` processes.
    """

    folders: Sequence[str] = ()
    excluded: Sequence[str] = ()
    databases: Sequence[str] = ()
    cleared_tables: Sequence[str] = ()
    configuration: str = ""

    def includes(self, path: str) -> bool:
        """Return whether an entry is saved if the folder around it is: a part of a folder, or on the way to one."""
        name = path.rpartition("/")[2]
        if any(fnmatchcase(path if "/" in one else name, one) for one in (*_EVERYWHERE, *self.excluded)):
            return False
        return any(
            f"{path}/".startswith(f"{folder}/") or f"{folder}/".startswith(f"{path}/") for folder in self.folders
        )

    def includes_all(self, path: str) -> bool:
        """Return whether an entry and every folder around it is saved."""
        parts = path.split("/")
        return all(self.includes("/".join(parts[: count + 1])) for count in range(len(parts)))

    def is_database(self, path: str) -> bool:
        return any(fnmatchcase(path, one) for one in self.databases)
